"""The dashboard's pages about queues and workers."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.panels import MOST_ROWS, Bars, Content, Figure, Panel, Table, action

MINUTES = 30


class QueuesPanel(Panel):
    """How full every queue is, how long jobs wait, and what was done in the last half hour."""

    slug = "queues"
    title = _("Queues")

    def content(self) -> Iterable[Content]:
        """Return figures, a table of the queues and the jobs done per minute. Two round trips."""
        from redis_kit.queues.overview import known_queues, reports_of

        reports = reports_of(known_queues()[:MOST_ROWS], minutes=MINUTES)
        counts = [report.counts for report in reports.values()]
        waits = [report.wait for report in reports.values() if report.wait is not None]
        dead = sum(count.dead for count in counts)
        yield Figure(_("Ready"), sum(count.ready for count in counts))
        yield Figure(_("Scheduled"), sum(count.scheduled for count in counts))
        yield Figure(_("Running"), sum(count.running for count in counts))
        yield Figure(_("Dead"), dead, hint=_("Jobs that used up their attempts."), alarm=dead > 0)
        yield Figure(_("Oldest wait (s)"), round(max(waits, default=0.0), 1))
        yield Table(
            _("Queues"),
            (_("Queue"), _("Scheduled"), _("Ready"), _("Running"), _("Dead"), _("Waits (s)")),
            [(name, *report.counts, _rounded(report.wait)) for name, report in reports.items()],
            empty=_("No queue has been used."),
            actions=("requeue_dead",),
        )
        if reports:
            minute = next(iter(reports.values())).minute
            done = [sum(column) for column in zip(*(report.done for report in reports.values()), strict=True)]
            bars = [(_clock(minute - MINUTES + 1 + place), float(count)) for place, count in enumerate(done)]
            yield Bars(_("Jobs done per minute"), bars)

    @action(_("Put dead jobs back"), permission="redis_kit.manage_queues", confirm=True, asks=_("Queue"))
    def requeue_dead(self, queue: str) -> str:
        """Make up to 1000 dead jobs of a queue ready again."""
        from redis_kit.queues.queue import Queue

        moved = Queue(queue).requeue_dead(limit=1000)
        return ngettext("%(count)d job is back in %(queue)s.", "%(count)d jobs are back in %(queue)s.", moved) % {
            "count": moved,
            "queue": queue,
        }


class WorkersPanel(Panel):
    """Who works, on what, and since when nothing was heard of them."""

    slug = "workers"
    title = _("Workers")

    def content(self) -> Iterable[Content]:
        """Return a figure and a table of the workers. Two round trips."""
        from redis_kit.queues.overview import workers

        found = workers()
        yield Figure(_("Workers"), len(found))
        yield Table(
            _("Workers"),
            (_("Worker"), _("Host"), _("Process"), _("Queues"), _("Jobs"), _("Last beat (s ago)")),
            [
                (one.id, one.host, str(one.pid), ", ".join(one.queues), ", ".join(one.jobs), round(one.silent, 1))
                for one in found[:MOST_ROWS]
            ],
            empty=_("No worker is running. Start one with: manage.py rk_worker"),
        )


def _rounded(wait: float | None) -> float | str:
    return "" if wait is None else round(wait, 1)


def _clock(minute: int) -> str:
    return timezone.localtime(datetime.fromtimestamp(minute * 60, UTC)).strftime("%H:%M")
