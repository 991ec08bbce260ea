"""The dashboard's pages about queues and workers."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisKitError
from redis_kit.core.panels import MOST_ROWS, Content, Field, Figure, Panel, Search, Table, action
from redis_kit.queues.jobs import ids
from redis_kit.queues.panels import actions, job_page, queues_page, workers_page
from redis_kit.queues.panels.actions import GroupTarget, JobTarget, SupervisorTarget

SAMPLE = 10  # jobs
CHOICE = 100  # characters of a name that can be chosen
MANAGE = "redis_kit.manage_queues"
TIME = _("For how long, such as 15m or 2h (empty: until it is resumed)")


def _job(value: str) -> str:
    return JobTarget.parse(value).shown


def _supervisor(value: str) -> str:
    return SupervisorTarget.parse(value).shown


def _group(value: str) -> str:
    return GroupTarget.parse(value).shown


def _unreadable(errors: Mapping[str, Exception]) -> Iterator[Content]:
    if errors:
        yield Figure(_("Queues that can't be read"), len(errors), hint=", ".join(errors), alarm=True)
        rows = [(name, str(error)) for name, error in errors.items()]
        yield Table(_("Queues that can't be read"), (_("Queue"), _("What is wrong")), rows)


class QueuesPanel(Panel):
    """How full every queue is, how long jobs wait, what was done in the last half hour, and what jobs died of."""

    slug = "queues"
    title = _("Queues")

    def search(self) -> Search | None:
        """Return the look-up of one job, for those who may change it: it shows what the job holds."""
        if not self.viewer.may(MANAGE):
            return None
        queue = Field("queue", _("Queue"), self._choices, any=_("(the id says it)"), optional=True)
        return Search(
            _("Look up"), (queue, Field("id", _("Id of a job (empty: the queue's first jobs)"), optional=True))
        )

    def content(self) -> Iterator[Content]:
        """Return what was looked up alone, else all queues: figures, tables and what was done in each minute.

        Two round trips, and one more for all queues where there are dead jobs.
        """
        if isinstance(self._names, RedisKitError):
            raise self._names
        if self.viewer.may(MANAGE) and ("queue" in self.viewer.asked or "id" in self.viewer.asked):
            try:
                yield from self._looked_up(self._names, self._asked("queue"), self._asked("id"))
            except (InvalidName, InvalidValue, KeyConflict) as error:
                yield Table(_("Looked up"), (), [], empty=str(error))
            if self._asked("queue") or self._asked("id"):
                return
        yield from self._all(self._names[:MOST_ROWS])

    def _looked_up(self, names: list[str], queue: str, id: str) -> Iterator[Content]:
        from redis_kit.queues.monitoring.inspection import look_up
        from redis_kit.queues.panels import turns

        unknown = _("There is no queue %(queue)s.") % {"queue": queue}
        if not id and queue in names:
            yield from turns.first(queue)
            return
        if not id:
            hint = unknown if queue else _("Choose a queue, or write the id of a job.")
            yield Table(_("Looked up"), (), [], empty=hint)
            return
        own = ids.queue_of(id)
        chosen = queue or own
        found, known = look_up([chosen, own] if own in names and own != chosen and "." in id else [chosen], id)
        if known is None and queue and queue not in names:
            yield Table(_("Looked up"), (), [], empty=unknown)
            return
        yield from job_page.content((found, id), known)

    def _all(self, names: list[str]) -> Iterator[Content]:
        from redis_kit.queues.monitoring.inspection import inspect
        from redis_kit.queues.monitoring.stats import Errors, reports_of

        errors: Errors = {}
        reports = reports_of(names, minutes=queues_page.MINUTES, errors=errors)
        yield from queues_page.figures(reports)
        dead = {name: report.counts.dead for name, report in reports.items()}
        found = inspect(dead, errors)
        yield from _unreadable(errors)
        yield from queues_page.queues(reports)
        yield from queues_page.unknown(reports)
        yield from queues_page.bars(reports)
        if found.groups:
            yield queues_page.groups(found, sum(dead.values()), linked=self.viewer.may(MANAGE))

    @action(_("Pause"), permission=MANAGE, asks=None, wants=TIME)
    def pause(self, queue: str, time: str) -> str:
        """Let a queue give out no jobs, or give its pause another end."""
        return actions.pause(queue, time)

    @action(_("Resume"), permission=MANAGE, asks=None)
    def resume(self, queue: str) -> str:
        """Let a queue give out jobs again."""
        return actions.resume(queue)

    @action(_("Retry"), permission=MANAGE, asks=None, named=_job)
    def retry(self, value: str) -> str:
        """Make a dead job ready as if it were new."""
        return JobTarget.parse(value).retry()

    @action(_("Run now"), permission=MANAGE, asks=None, named=_job)
    def run_now(self, value: str) -> str:
        """Make a scheduled job ready."""
        return JobTarget.parse(value).run_now()

    @action(_("Cancel the job"), permission=MANAGE, asks=None, named=_job, confirm=True)
    def cancel(self, value: str) -> str:
        """Cancel a job that waits or runs; its result says so."""
        return JobTarget.parse(value).cancel()

    @action(_("Delete"), permission=MANAGE, asks=None, named=_job, confirm=True)
    def delete(self, value: str) -> str:
        """Delete a job that is not running."""
        return JobTarget.parse(value).delete()

    @action(_("Retry 1"), permission=MANAGE, asks=None, named=_group)
    def requeue_one(self, value: str) -> str:
        """Make the oldest dead job of a group ready."""
        return GroupTarget.parse(value).requeue(1)

    @action(_("Retry 10"), permission=MANAGE, asks=None, named=_group)
    def requeue_sample(self, value: str) -> str:
        """Make the ten oldest dead jobs of a group ready."""
        return GroupTarget.parse(value).requeue(SAMPLE)

    @action(_("Retry all"), permission=MANAGE, asks=None, named=_group, confirm=True)
    def requeue_group(self, value: str) -> str:
        """Make all dead jobs of a group ready."""
        return GroupTarget.parse(value).requeue()

    @action(_("Retry dead jobs"), permission=MANAGE, confirm=True, asks=_("Queue"))
    def requeue_dead(self, queue: str) -> str:
        """Make up to 1000 dead jobs of a queue ready again."""
        return actions.put_back(actions.existing(queue).requeue_dead(limit=1000), queue)

    @cached_property
    def _names(self) -> list[str] | RedisKitError:
        from redis_kit.queues.monitoring.stats import known_queues

        try:
            return known_queues()
        except RedisKitError as error:
            return error  # for the content to tell, and not to ask again for the form above it

    def _choices(self) -> list[str]:
        if isinstance(self._names, RedisKitError):
            raise self._names
        return [name for name in self._names[:MOST_ROWS] if name.isprintable() and len(name) <= CHOICE]

    def _asked(self, field: str) -> str:
        return self.viewer.asked.get(field, "").strip()


class WorkersPanel(Panel):
    """Who works, on what and how long, how large they are, and since when nothing was heard of them."""

    slug = "workers"
    title = _("Workers")

    def content(self) -> Iterator[Content]:
        """Return figures and the workers by their supervisors. Two round trips."""
        from redis_kit.queues.monitoring.stats import Errors, workers

        errors: Errors = {}
        found = workers(errors=errors)
        mine, linked = workers_page.crews(found), self.viewer.may(MANAGE)
        yield from workers_page.figures(found, mine)
        yield from _unreadable(errors)
        yield workers_page.supervisors(mine[:MOST_ROWS])
        yield from workers_page.children(mine, linked=linked)
        if alone := [one for one in found if not one.supervisor]:
            yield workers_page.others(alone[:MOST_ROWS], linked=linked)

    @action(_("Quiet"), permission=MANAGE, asks=None, named=_supervisor)
    def quiet(self, value: str) -> str:
        """Let a supervisor's workers claim no more and finish what they run."""
        return SupervisorTarget.parse(value).order("quiet")

    @action(_("Claim again"), permission=MANAGE, asks=None, named=_supervisor)
    def work(self, value: str) -> str:
        """Let a quiet supervisor's workers claim again."""
        return SupervisorTarget.parse(value).order("work")

    @action(_("Stop"), permission=MANAGE, asks=None, named=_supervisor, confirm=True)
    def stop(self, value: str) -> str:
        """Let a supervisor's workers finish what they run, within its grace, and end."""
        return SupervisorTarget.parse(value).order("stop")
