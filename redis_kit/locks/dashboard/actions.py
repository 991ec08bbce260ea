"""The target of a dashboard button: the lease of a lock, one or all leases of a semaphore, or its limit."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Effect
from redis_kit.core.text import first_of, grouped
from redis_kit.locks.arguments import LIMIT
from redis_kit.locks.inspection import HeldLock, find, index
from redis_kit.locks.inspection.api import ALL, force, semaphore

VALUE = re.compile(
    r"(?:@([^/]+)/)?(lock|fairlock|rwlock|semaphore)/(\d{0,19})(?:-(\d{1,19}))?/([^/]+(?:/[^/]+)*)", re.ASCII
)
HOLDERS = 5  # named in a sentence
MOST_LEASES = 10_000


class Target(NamedTuple):
    """A name and its kind, the fence of one lease or None for all, the semaphores it is within, and the connection.

    With a ``last_fence`` all leases up to that one are meant, and no later ones.
    """

    kind: str
    name: str
    fence: int | None = None
    within: tuple[str, ...] = ()
    using: str = "default"
    last_fence: int | None = None

    @classmethod
    def parse(cls, value: str) -> "Target":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := VALUE.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: that is not a lock or semaphore."))
        using, kind, *fences, names = match.groups()
        *within, name = map(unquote, names.split("/"))
        fence, last_fence = (int(text) if text else None for text in fences)
        return cls(kind, name, fence, tuple(within), unquote(using or "default"), last_fence)

    @property
    def value(self) -> str:
        """Return the value of a button."""
        names = (quote(name, safe="") for name in (*self.within, self.name))
        connection = () if self.using == "default" else (f"@{quote(self.using, safe='')}",)
        fence = self.fence if self.last_fence is None else f"-{self.last_fence}"
        return "/".join((*connection, self.kind, "" if fence is None else str(fence), *names))

    @property
    def shown(self) -> str:
        """Return how confirmations and the log name the target."""
        return self.name if self.using == "default" else f"{self.name} ({self.using})"

    def end(self) -> str:
        """End its leases, and return a message. Raises InvalidValue if they have ended."""
        releases = force(self.kind, self.name, self.within, self._fences, self.using)
        holders = index.over(self.using).run_flow(releases)
        if not holders:
            raise self._released_before()
        named = _named([(holder.process_text, holder.location, holder.doing) for holder in holders])
        return ngettext(
            "%(count)s lease of %(name)s was released, held by %(holders)s.",
            "%(count)s leases of %(name)s were released, held by %(holders)s.",
            len(holders),
        ) % {"name": self.shown, "count": grouped(len(holders)), "holders": named}

    def effect(self, action: str) -> Effect:
        """Return what end() or limit() will do. One round trip. end() raises InvalidValue if its leases have ended."""
        return self._effect_of_end() if action == "end" else self._effect_of_limit()

    def _effect_of_end(self) -> Effect:
        held = self._held()
        all_leases = [] if held is None else [held] if isinstance(held, HeldLock) else held.holders
        leases = [lease for lease in all_leases if lease.fence in self._fences]
        if held is None or not leases:
            raise self._released_before()
        named = _named([(lease.holder, lease.location, lease.doing) for lease in leases])
        ends = ngettext(
            "%(count)s lease ends, held by %(holders)s.", "%(count)s leases end, held by %(holders)s.", len(leases)
        ) % {"count": grouped(len(leases)), "holders": named}
        waits = ngettext("%(count)s caller is waiting.", "%(count)s callers are waiting.", held.waiters)
        waiting = [waits % {"count": grouped(held.waiters)}] if held.waiters else []
        not_stopped = _("The code that holds it is not stopped: it learns of the loss when it renews or releases.")
        named_leases = self if self.fence is not None else self._replace(last_fence=max(each.fence for each in leases))
        return Effect(" ".join((ends, *waiting, not_stopped)), named_leases.value)

    def _effect_of_limit(self) -> Effect:
        held, stays = self._held(), _("Held leases stay. The limit applies to new ones.")
        if held is None:
            return Effect(" ".join((_("No slot is in use."), stays)), self.value)
        numbers = {"used": grouped(held.used), "limit": grouped(held.limit), "waiters": grouped(held.waiters)}
        used = _("In use: %(used)s of %(limit)s slots. Waiting: %(waiters)s.") % numbers
        return Effect(" ".join((used, stays)), self.value)

    def limit(self, text: str) -> str:
        """Set the limit of a semaphore; without text the limit in the code counts again. Raises InvalidValue."""
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InvalidValue(_("The limit must be a whole number."))
        held = semaphore((*self.within, self.name), LIMIT[1:], using=self.using)
        held.set_limit(int(text) if text else None)
        if text:
            return _("The limit of %(name)s is %(limit)s now.") % {"name": self.shown, "limit": grouped(int(text))}
        return _("The limit of %(name)s is the limit in the code again.") % {"name": self.shown}

    @property
    def _fences(self) -> range:
        if self.fence is not None:
            return range(self.fence, self.fence + 1)
        return ALL if self.last_fence is None else range(self.last_fence + 1)

    def _held(self) -> Any:
        held = find(self.name, within=self.within, limit=MOST_LEASES, using=self.using)
        return next((lock for lock in held if lock.kind == self.kind), None)

    def _released_before(self) -> InvalidValue:
        return InvalidValue(_("Nothing was released: %(name)s was released before.") % {"name": self.shown})


def _named(holders: Sequence[tuple[str, str, str]]) -> str:
    """Return the first holders in a line: the process, location and work of each."""
    return first_of([", ".join(filter(None, holder)) for holder in holders], HOLDERS, "; ")
