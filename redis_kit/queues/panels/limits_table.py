"""The limits of a queue on the dashboard, and the buttons that change them."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Table
from redis_kit.queues.panels.actions import existing

if TYPE_CHECKING:
    from redis_kit.queues.store.limits import LimitInfo

LIMIT = re.compile(r"([^/]+)/(\S{1,600})")
BUTTONS = ("change_limit", "reset_limit")
TITLE = gettext_lazy("Limits of %s")
COLUMNS = (
    gettext_lazy("Limit"),
    gettext_lazy("Concurrency"),
    gettext_lazy("Rate"),
    gettext_lazy("Running"),
    gettext_lazy("Waiting lanes"),
    gettext_lazy("Next start in"),
    gettext_lazy("Changed"),
)
WANTS = gettext_lazy("Concurrency, rate or both, such as 4, 10/s or 4 10/s (empty: no limit)")


class LimitTarget(NamedTuple):
    """One limit of a queue, as the value of a button names it."""

    queue: str
    limit: str

    @classmethod
    def parse(cls, value: str) -> "LimitTarget":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := LIMIT.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: this is not a limit."))
        return cls(unquote(match[1]), match[2])

    @property
    def value(self) -> str:
        """Return the value of a button."""
        return f"{quote(self.queue, safe='')}/{self.limit}"

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        return f"{self.queue}, {self.limit}"

    def change(self, text: str) -> str:
        """Set what the limit allows. Raises InvalidValue."""
        from redis_kit.queues import limits

        numbers = [part for part in re.split(r"[\s,]+", text.strip()) if part]
        counts = [part for part in numbers if part.isdecimal()]
        rates = [part for part in numbers if not part.isdecimal()]
        if len(counts) > 1 or len(rates) > 1:
            raise InvalidValue(_("Nothing was changed: give one number of jobs, one rate, or both."))
        concurrency, rate = int(counts[0]) if counts else None, rates[0] if rates else None
        limits.set_limit(existing(self.queue).name, self.limit, concurrency=concurrency, rate=rate)
        return _("Changed: %(limit)s.") % {"limit": self.shown}

    def reset(self) -> str:
        """Let the limit allow again what the code says. Raises InvalidValue if it does."""
        from redis_kit.queues import limits

        if not limits.reset_limit(existing(self.queue).name, self.limit):
            raise InvalidValue(_("Nothing was reset: %(limit)s allows what the code says.") % {"limit": self.shown})
        return _("Reset: %(limit)s.") % {"limit": self.shown}


def tables(queue: str, listed: "list[LimitInfo]") -> Iterator[Table]:
    """Yield the limits of a queue, if it has any."""
    if not listed:
        return
    yield Table(
        TITLE % queue,
        COLUMNS,
        [
            (
                info.name,
                info.concurrency,
                info.rate,
                info.running,
                info.waiting,
                timedelta(seconds=info.next_start) if info.next_start else None,
                _("yes") if info.changed else "",
            )
            for info in listed
        ],
        actions=BUTTONS,
        values=[LimitTarget(queue, info.name).value for info in listed],
        offered=[BUTTONS if info.changed else BUTTONS[:1] for info in listed],
    )
