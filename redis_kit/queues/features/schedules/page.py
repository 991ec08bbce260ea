"""The dashboard's panel of schedules: what happens in the next day, and what became of the last ticks."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.flow import Flow
from redis_kit.core.panels import MOST_ROWS, Content, Field, Figure, Lines, Link, Pages, Panel, Search, Table, Tile
from redis_kit.core.text import duration
from redis_kit.queues.dashboard.job_page import STATUSES
from redis_kit.queues.dashboard.panel import MANAGE, button
from redis_kit.queues.features.schedules import control, inspection, store
from redis_kit.queues.features.schedules.store import OVERDUE, Page, StoredSchedule

SLUG = "schedule"
NONE = gettext_lazy("There are no schedules. Workers declare those of the code when they start.")
OF_EACH = 3  # next ticks of a schedule, so that frequent ones leave room for the others
OUTCOMES = {
    "added": gettext_lazy("job added"),
    "retried": gettext_lazy("retry of the job before"),
    "skipped": gettext_lazy("skipped: the job before had not ended"),
    "waits": gettext_lazy("waits for the running job"),
    "missed": gettext_lazy("missed"),
}


class SchedulesPanel(Panel):
    """The schedules: their next ticks within a day, and their last ones."""

    slug = SLUG
    title = gettext_lazy("Schedule")

    def search(self) -> Search:
        """Return the form that shows some of the schedules."""
        return Search(_("Search"), (Field("name", _("Beginning of the name"), optional=True),))

    def content(self) -> Iterator[Content]:
        """Yield figures, the schedules by name, and the ticks of the next 24 hours. Three round trips."""
        coming, text = inspection.listed("due", limit=MOST_ROWS), self.viewer.asked.get("name", "").strip()
        page = inspection.listed(offset=(self.viewer.page - 1) * MOST_ROWS, limit=MOST_ROWS, beginning=text)
        yield from figures(coming)
        yield _schedules_table(page, inspection.outcomes(page.schedules), linked=self.viewer.may(MANAGE), searched=text)
        yield from Pages.of(SLUG, self.viewer.page, page.total, {"name": text} if text else {})
        yield _next_table(coming, inspection.next_ticks(coming, MOST_ROWS, each=OF_EACH))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the schedules that tick next. One round trip."""
        return {"default": store.page("due", 0, MOST_ROWS)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many schedules there are, and those that are late; None without schedules."""
        coming = replies["default"]
        return Tile.of(figures(coming)) if coming.total else None

    @button(gettext_lazy("Pause"), named=unquote)
    def pause(self, value: str) -> str:
        """Turn a schedule off."""
        control.turn(unquote(value), on=False)
        return _("Paused: %(schedule)s.") % {"schedule": unquote(value)}

    @button(gettext_lazy("Resume"), named=unquote)
    def resume(self, value: str) -> str:
        """Turn a schedule on again."""
        control.turn(unquote(value), on=True)
        return _("Resumed: %(schedule)s.") % {"schedule": unquote(value)}

    @button(gettext_lazy("Run now"), named=unquote)
    def run_now(self, value: str) -> Link:
        """Add a job of a schedule now, and lead to its page."""
        queue, job = control.run(unquote(value))
        added = _("Added to %(queue)s: job %(job)s.") % {"queue": queue, "job": job}
        return Link(added, "queues", {"queue": queue, "id": job})


def figures(coming: Page) -> Iterator[Figure]:
    """Yield how many schedules there are, which of the next ones can't run, and whether ticks are overdue."""
    yield Figure(_("Schedules"), coming.total)
    dues = [info.due for info in coming.schedules if info.due is not None and not info.problem]
    first = min(dues, default=None)
    yield Figure(_("Next tick in"), None if first is None else timedelta(milliseconds=max(0, first - coming.now)))
    stuck = [info.name for info in coming.schedules if info.problem]
    if stuck:
        hint = ", ".join(stuck[:5]) + ", …" * (len(stuck) > 5)
        yield Figure(_("Schedules that can't run"), len(stuck), hint=hint, alarm=True)
    if late := max((info.overdue(coming.now) for info in coming.schedules), default=0):
        hint = _("See the log of the workers.") if coming.watched else _("No worker is running.")
        yield Figure(_("Overdue by"), timedelta(milliseconds=late), hint=hint, alarm=True)


def _next_table(coming: Page, ticks: list[tuple[int, StoredSchedule]]) -> Table:
    columns = (_("Time"), _("In"), _("Schedule"))
    rows = [
        (_moment(at), _overdue(coming.now - at) or timedelta(milliseconds=max(0, at - coming.now)), Lines(_names(info)))
        for at, info in ticks
        if not info.problem
    ]
    title = _("The next 24 hours: the first %d ticks of each") % OF_EACH
    new = any(info.new and not info.paused for info in coming.schedules)
    why = _("No worker has taken over new schedules yet: start rk_worker.")
    return Table(title, columns, rows, empty=why if new else _("No schedule ticks within 24 hours."))


def _schedules_table(page: Page, outcomes: dict[str, str], *, linked: bool, searched: str) -> Table:
    columns = (_("Schedule"), _("When"), _("Next tick"), _("Last tick"), _("Outcome"), _("Runs"))
    return Table(
        _("Schedules by name"),
        columns,
        [_row(info, page.now, outcomes.get(info.name, ""), linked=linked) for info in page.schedules],
        empty=_("No name begins with this text.") if searched else NONE,
        actions=("pause", "resume", "run_now"),
        values=[quote(info.name, safe="") for info in page.schedules],
        offered=[("resume", "run_now") if info.paused else ("pause", "run_now") for info in page.schedules],
    )


def _row(info: StoredSchedule, now: int, status: str, *, linked: bool) -> tuple[Any, ...]:
    state = info.state
    outcome: Any = STATUSES.get(status, "")
    if linked and state.job:
        outcome = Link(outcome or state.job, "queues", {"queue": state.queue, "id": state.job})
    counts = [(state.skips, _("%d skipped")), (state.missed, _("%d missed"))]
    return (
        Lines((*_names(info), info.problem)),
        inspection.when(info.definition) if info.definition else "",
        _next(info, now),
        Lines((_moment(state.tick), _("%s late") % duration(state.late / 1000))) if state.tick else "",
        Lines((OUTCOMES.get(state.outcome, ""), outcome)) if state.outcome else "",
        Lines((state.runs, *(text % count for count, text in counts if count))),
    )


def _overdue(late: int) -> str:
    return _("overdue by %s") % duration(late / 1000) if late >= OVERDUE else ""


def _next(info: StoredSchedule, now: int) -> Any:
    if info.problem:
        return _("can't run")
    if info.due is not None:
        return Lines((_moment(info.due), _overdue(now - info.due)))
    return _("paused") if info.paused else ""


def _names(info: StoredSchedule) -> tuple[str, ...]:
    """Return the name of a schedule and that of its task, once if they are the same."""
    return (info.name,) if info.definition is None else tuple(dict.fromkeys((info.name, info.definition.task)))


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
