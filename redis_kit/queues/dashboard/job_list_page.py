"""The dashboard's page of jobs: those of a queue in one state, searched and changed many at a time."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import Content, Field, Figure, Link, NextPage, Search, Table
from redis_kit.core.text import grouped
from redis_kit.queues.dashboard import job_page, queues_page
from redis_kit.queues.dashboard.actions import JOB, MOST, OF_STATES, TEXTS, JobSelection, JobTarget
from redis_kit.queues.dashboard.job_page import COLUMNS, TITLES
from redis_kit.queues.dashboard.panel import MANAGE, QueueChoicePanel, job_button
from redis_kit.queues.engine.job import State
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import job_pages
from redis_kit.queues.reports.job_pages import JobPage, TextFilter
from redis_kit.queues.reports.stats import Errors, queue_counts

SLUG = "jobs"
KEEPS_NONE = _("No done job is kept. The option DONE_LIMIT of a queue keeps the latest ones.")
SHOWN = 50  # jobs on a page
BUTTONS: dict[str, tuple[str, ...]] = {"done": ()} | {
    state: tuple(f"{name}_jobs" for name in names) for state, names in OF_STATES.items()
}


class JobsPanel(QueueChoicePanel):
    """The jobs of one queue in one state, page by page; without a queue how many jobs each queue has."""

    slug = SLUG
    title = _("Jobs")
    permission = MANAGE

    def search(self) -> Search:
        """Return the choice of a queue and a state, and the texts to look for."""
        return Search(
            _("Search"),
            (
                self.queue_field,
                Field("state", _("State"), tuple(TITLES), labels=tuple(TITLES.values())),
                Field("task", _("Text in the task's name"), optional=True),
                Field("error", _("Text in the error"), optional=True),
                Field("tag", _("Tag"), optional=True),
            ),
        )

    def content(self) -> Iterator[Content]:
        """Yield the number of jobs in each state, and a page of those of one queue in one state.

        Without a choice of the state it is the first one that has jobs. Two round trips, three if the settings name
        SHARDS, and one more if that state is not ready.
        """
        yield from self._jobs() if self.queue() else self._queues()

    def _queues(self) -> Iterator[Content]:
        errors: Errors = {}
        counts = queue_counts(self.names, errors=errors)
        searched = self._texts()
        listed, pages = self.page_of(counts, busy=any, asked=searched)
        title = _("Choose the queue to search in") if searched else _("Jobs of all queues")
        yield from queues_page.unreadable(errors)
        yield queues_page.counts(title, listed, searched)
        yield from pages

    def _jobs(self) -> Iterator[Content]:
        wanted, cursor = TextFilter(*map(self.asked, TEXTS)), self.asked("cursor")
        page = self._read(wanted, cursor)
        first = next((state for state in TITLES if _count(page, state)), self._state)
        if first != self._state and self.asked("state") not in TITLES and not cursor:
            self.viewer = replace(self.viewer, asked={**self.viewer.asked, "state": first})
            page = self._read(wanted, cursor)
        yield from self._tabs(page)
        yield self._table(page)
        if page.cursor or cursor:
            yield self._further(page)
        if any(wanted) and page.jobs and self._state in OF_STATES:
            yield self._matching()
        if page.groups and not cursor:
            rows = [(self.queue(), group) for group in page.groups]
            yield queues_page.groups(rows, page.counts.dead, linked=True)

    retry_jobs = job_button("retry", _("Retry"), harmless=True)
    run_now_jobs = job_button("run_now", _("Run now"), harmless=True)
    cancel_jobs = job_button("cancel", _("Cancel jobs"))
    delete_jobs = job_button("delete", _("Delete"))

    def _read(self, wanted: TextFilter, cursor: str) -> JobPage:
        queue = Queue(self.queue())
        page: JobPage = queue.run_flow(
            job_pages.job_page(queue, self._state, cursor=cursor, wanted=wanted, limit=SHOWN)
        )
        return page

    def _tabs(self, page: JobPage) -> Iterator[Figure]:
        for state, title in TITLES.items():
            here = state == self._state and not self.asked("cursor")
            link = Link(_("Show"), SLUG, {"queue": self.queue(), "state": state})
            yield Figure(title, _count(page, state), hint=_("shown below") if here else link)

    def _table(self, page: JobPage) -> Table:
        jobs, queue = page.jobs, self.queue()
        targets = [JobTarget(queue, info.id, self._state).value for info in jobs]
        searched = any(map(self.asked, TEXTS))
        looked = _("Searched %s jobs; none of them matches.") % grouped(page.looked_at) if searched else ""
        return Table(
            job_page.title(queue, self._state),
            COLUMNS[self._state],
            [job_page.row(queue, info) for info in jobs],
            empty=looked or (KEEPS_NONE if self._state == "done" else _("No job is in this state.")),
            selects=BUTTONS[self._state],
            values=[value if JOB.fullmatch(value) else "" for value in targets],
        )

    def _further(self, page: JobPage) -> NextPage:
        query = {"queue": self.queue(), "state": self._state, **self._texts(), "cursor": page.cursor}
        return NextPage(SLUG, query, gettext("Jobs looked at: %s.") % grouped(page.looked_at))

    def _texts(self) -> dict[str, str]:
        return {name: text for name in TEXTS if (text := self.asked(name))}

    def _matching(self) -> Table:
        selection = JobSelection(self.queue(), (), self._state, *map(self.asked, TEXTS))
        return Table(
            _("All jobs that match"),
            (_("Search"), _("At most")),
            [(selection.shown, MOST)],
            actions=BUTTONS[self._state],
            values=[selection.value],
        )

    @property
    def _state(self) -> State:
        state = self.asked("state")
        return cast("State", state) if state in TITLES else "ready"


def _count(page: JobPage, state: str) -> int:
    count: int = page.done if state == "done" else getattr(page.counts, state)
    return count
