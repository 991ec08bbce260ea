"""Lanes: jobs with the same limits wait in one, and lanes take turns. Its name is made of the names of its limits."""

from typing import Any, NamedTuple
from urllib.parse import quote

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened

LONGEST = 200  # bytes of a group's name
_SAFE = ":/@,+~"


class Lane(NamedTuple):
    """The lane of a new job, as scripts expect it: a line with the names of its limits, then what the code allows."""

    text: str


def of_group(group: Any) -> Lane | None:
    """Return the lane of a group's jobs; None without a group. Raises InvalidValue."""
    return None if group is None else Lane(group_name(group))


def group_name(group: Any) -> str:
    """Return the name of the limit of a group. Raises InvalidValue naming what is allowed."""
    if not isinstance(group, str) or not 0 < len(group.encode("utf-8", "replace")) <= LONGEST:
        raise InvalidValue(f"group must be text of 1 to {LONGEST} bytes, such as 'tenant:7', not {shortened(group)}.")
    return f"group={quote(group, _SAFE, errors='surrogatepass')}"
