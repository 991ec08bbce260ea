"""The target of a dashboard button: the lease of a lock, one or all leases of a semaphore, or its limit."""

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidValue
from redis_kit.locks.arguments import LIMIT
from redis_kit.locks.inspection import HeldLock, find, force_release
from redis_kit.locks.kinds.semaphore import Semaphore

VALUE = re.compile(r"(lock|fairlock|rwlock|semaphore)/(\d{0,19})/([^/]+(?:/[^/]+)*)", re.ASCII)
HOLDERS = 5  # named in a sentence
MOST_LEASES = 10_000


class Target(NamedTuple):
    """A name, its kind, the semaphores that it is within, and the fence of one lease, or None for all."""

    kind: str
    name: str
    fence: int | None = None
    within: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: str) -> "Target":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := VALUE.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: that is not a lock or semaphore."))
        kind, fence, names = match.groups()
        *within, name = map(unquote, names.split("/"))
        return cls(kind, name, int(fence) if fence else None, tuple(within))

    @classmethod
    def semaphore(cls, value: str) -> "Target":
        """Return the semaphore in the value of a row's button, or the one whose name was typed."""
        return cls.parse(value) if VALUE.fullmatch(value) else cls("semaphore", value)

    @property
    def value(self) -> str:
        """Return the value of a button."""
        names = (quote(name, safe="") for name in (*self.within, self.name))
        return "/".join((self.kind, "" if self.fence is None else str(self.fence), *names))

    def end(self) -> str:
        """End its leases, and return a message. Raises InvalidValue if they have ended."""
        holders = force_release(self.name, kind=self.kind, fence=self.fence, within=self.within)
        if not holders:
            raise self._released_before()
        named = _named([(holder.process_text, holder.location, holder.doing) for holder in holders])
        return ngettext(
            "%(count)d lease of %(name)s was released, held by %(holders)s.",
            "%(count)d leases of %(name)s were released, held by %(holders)s.",
            len(holders),
        ) % {"name": self.name, "count": len(holders), "holders": named}

    def effect_of_end(self) -> str:
        """Return what end() will do. One round trip. Raises InvalidValue if its leases have ended."""
        held = self._held()
        all_leases = [] if held is None else [held] if isinstance(held, HeldLock) else held.holders
        leases = [lease for lease in all_leases if self.fence in (None, lease.fence)]
        if held is None or not leases:
            raise self._released_before()
        named = _named([(lease.holder, lease.location, lease.doing) for lease in leases])
        ends = ngettext(
            "%(count)d lease ends, held by %(holders)s.", "%(count)d leases end, held by %(holders)s.", len(leases)
        ) % {"count": len(leases), "holders": named}
        waits = ngettext("%(count)d caller is waiting.", "%(count)d callers are waiting.", held.waiters)
        waiting = [waits % {"count": held.waiters}] if held.waiters else []
        not_stopped = _("The code that holds it is not stopped: it learns of the loss when it renews or releases.")
        return " ".join((ends, *waiting, not_stopped))

    def effect_of_limit(self) -> str:
        """Return what limit() will do. One round trip."""
        held, stays = self._held(), _("Held leases stay. The limit applies to new ones.")
        if held is None:
            return " ".join((_("No slot is in use."), stays))
        numbers = {"used": held.used, "limit": held.limit, "waiters": held.waiters}
        used = _("In use: %(used)d of %(limit)d slots. Waiting: %(waiters)d.") % numbers
        return " ".join((used, stays))

    def limit(self, text: str) -> str:
        """Set the limit of a semaphore; without text the limit in the code counts again. Raises InvalidValue."""
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InvalidValue(_("The limit must be a whole number."))
        self._semaphore().set_limit(int(text) if text else None)
        if text:
            return _("The limit of %(name)s is %(limit)s now.") % {"name": self.name, "limit": int(text)}
        return _("The limit of %(name)s is the limit in the code again.") % {"name": self.name}

    def _held(self) -> Any:
        held = find(self.name, within=self.within, limit=MOST_LEASES)
        return next((lock for lock in held if lock.kind == self.kind), None)

    def _released_before(self) -> InvalidValue:
        return InvalidValue(_("Nothing was released: %(name)s was released before.") % {"name": self.name})

    def _semaphore(self) -> Any:
        outer = reduce(lambda around, name: Semaphore(name, LIMIT[1], within=around), self.within, None)
        return Semaphore(self.name, LIMIT[1], within=outer)


def _named(holders: Sequence[tuple[str, str, str]]) -> str:
    """Return the first holders in a line: the process, location and work of each."""
    texts = [", ".join(filter(None, holder)) for holder in holders[:HOLDERS]]
    return "; ".join(texts + ["…"] * (len(holders) > HOLDERS))
