"""The charts of waits: of the range of time that the viewer chooses, and of the last hour."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Alert, Bars, Ranges, Sparkline, StackedBars, Table
from redis_kit.core.panels.ranges import Range
from redis_kit.core.text import grouped

if TYPE_CHECKING:
    from redis_kit.locks.inspection import Contended, LockWaits


def read(chosen: Range, most: int) -> "tuple[list[Contended], list[LockWaits]]":
    """Return the names with the longest waits of a day, and the waits in a range. One round trip."""
    from redis_kit.locks.inspection import history, index

    waits = history.read_hours if chosen.by_hour else history.read_minutes
    count = chosen.hours if chosen.by_hour else chosen.minutes
    both: list[Flow[Any]] = [index.contended(most, "default"), waits(count, "default")]
    names, numbers = index.Bucket("0").run_flow(gather(both, combine=True))
    return names, numbers


def charts(waits: Sequence["LockWaits"], chosen: Range) -> Iterator[Ranges | StackedBars | Bars | Table]:
    """Yield the choice of a range, the waits in it, the longest ones, and lost leases if there are any."""
    yield chosen.choice("locks", {})
    if not any(each.waits or each.lost for each in waits):
        yield Table(_("Waits that ended"), (), [], empty=_("No caller has waited in this time, and no lease was lost."))
        return
    last = chosen.last_minute(waits[-1].start)
    labels = chosen.labels(last)
    acquired = map(sum, chosen.bars([each.waits - each.timeouts for each in waits], last))
    timeouts = map(sum, chosen.bars([each.timeouts for each in waits], last))
    longest = [timedelta(seconds=max(bar)) for bar in chosen.bars([each.longest for each in waits], last)]
    lost = list(map(sum, chosen.bars([each.lost for each in waits], last)))
    yield StackedBars(
        _("Waits that ended"), labels, [(_("Acquired"), list(acquired)), (_("Timed out"), list(timeouts))]
    )
    yield Bars(_("Longest wait"), list(zip(labels, longest, strict=True)))
    if any(lost):
        yield Bars(_("Lost leases"), list(zip(labels, lost, strict=True)))


def trend(waits: Sequence["LockWaits"]) -> Sparkline:
    """Return the waits of the last hour by minute."""
    counts = [each.waits for each in waits]
    text = ngettext("%(count)s wait in an hour", "%(count)s waits in an hour", sum(counts))
    return Sparkline(text % {"count": grouped(sum(counts))}, counts)


def lost(waits: Sequence["LockWaits"]) -> Iterator[Alert]:
    """Yield the leases that were lost within the last hour, if there are any."""
    if count := sum(each.lost for each in waits):
        hint = _("They ended before their holders released them, or were released by force.")
        yield Alert(_("Leases lost in an hour"), count, hint)
