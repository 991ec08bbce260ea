"""The lane of a job as a value; see features.limits."""

from typing import NamedTuple


class Lane(NamedTuple):
    """The lane of a new job, as scripts expect it: a line with the names of its limits, then what the code allows."""

    text: str
