"""The dashboard's page about workers."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import methodcaller
from time import time
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from redis_kit.core.flow import Flow
from redis_kit.core.panels import Content, Figure, Lines, Link, Panel, Table, Tile
from redis_kit.core.text import duration, first_of
from redis_kit.queues.dashboard import queues_page
from redis_kit.queues.dashboard.actions import SupervisorTarget, process_name
from redis_kit.queues.dashboard.job_page import moment
from redis_kit.queues.dashboard.panel import MANAGE, target_button
from redis_kit.queues.queue import over
from redis_kit.queues.reports.stats import Errors
from redis_kit.queues.reports.workers import HOUR, LostWorker, RunningJob, WorkerInfo, read_workers

MOST_JOBS = 10  # of one worker
WORKING, QUIET, STOPPING, DEAD, DAMAGED = "working", "quiet", "stopping", "dead", "damaged"
UNRESPONSIVE = "unresponsive"
NAMED = 3  # workers in a hint
supervisor_button = partial(target_button, SupervisorTarget.parse)
HEARTBEAT = _("Last heartbeat (s\xa0ago)")
BUTTONS = {QUIET: ("resume", "stop"), STOPPING: (), DEAD: (), UNRESPONSIVE: ("quiet", "resume", "stop")}
STATES = {
    **{WORKING: _("working"), QUIET: _("quiet"), STOPPING: _("stopping"), DAMAGED: _("damaged")},
    DEAD: _("dead: its jobs wait for another worker"),
    UNRESPONSIVE: _("does not respond"),
}


class Supervisor(NamedTuple):
    """A supervisor and its worker processes."""

    target: SupervisorTarget
    workers: list[WorkerInfo]

    @property
    def state(self) -> str:
        """Return the state of its workers, of several the first of: stopping, working, quiet, unresponsive.

        It is dead if all workers are, and "" if they do not report a state.
        """
        states = {worker.state for worker in self.workers}
        silent = DEAD if states == {DEAD} else ""
        return next((state for state in (STOPPING, WORKING, QUIET, UNRESPONSIVE) if state in states), silent)


def supervisors(workers: Sequence[WorkerInfo]) -> list[Supervisor]:
    """Return the supervisors of workers. A worker of another program has none."""
    by_supervisor: dict[SupervisorTarget, list[WorkerInfo]] = {}
    for worker in workers:
        if worker.supervisor:
            target = SupervisorTarget(worker.host, worker.supervisor_pid, worker.supervisor)
            by_supervisor.setdefault(target, []).append(worker)
    return [Supervisor(target, by_supervisor[target]) for target in sorted(by_supervisor)]


def figures(
    workers: Sequence[WorkerInfo], all_supervisors: Sequence[Supervisor], lost: Sequence[LostWorker] = ()
) -> Iterator[Figure]:
    """Yield how many workers there are and were lost, what they do and how much memory they use."""
    quiet = sum(supervisor.state == QUIET for supervisor in all_supervisors)
    dead = sum(worker.state == DEAD for worker in workers)
    yield Figure(_("Workers"), len(workers) - dead)
    if dead:
        hint = _("They send no heartbeat. Their jobs wait for another worker.")
        yield Figure(_("Dead workers"), dead, hint=hint, alarm=True)
    if unresponsive := [worker for worker in workers if worker.state == UNRESPONSIVE]:
        why = _("%s: stopped by a signal, or a job holds the interpreter.") % _named(unresponsive)
        yield Figure(_("Workers that do not respond"), len(unresponsive), hint=why, alarm=True)
    if recent := [worker for worker in lost if worker.age < HOUR]:
        which = _("They ended without signing off: %s.") % _named(recent)
        yield Figure(_("Workers lost in the last hour"), len(recent), hint=which, alarm=True)
    yield Figure(_("Supervisors"), len(all_supervisors), hint=_("%d of them quiet") % quiet if quiet else "")
    yield Figure(_("Running jobs"), sum(worker.running for worker in workers))
    if memory := sum(worker.memory or 0 for worker in workers):
        yield Figure(_("Memory (MiB)"), memory)


def supervisors_table(all_supervisors: Sequence[Supervisor]) -> Table:
    """Return the supervisors, with their buttons."""
    return Table.of(
        _("Supervisors"),
        all_supervisors,
        [
            (_("Supervisor"), lambda each: each.target.shown),  # tells its buttons from those of others on its host
            (_("State"), lambda each: STATES.get(each.state, "")),
            (_("Processes"), lambda each: len(each.workers)),
            (_("Queues"), lambda each: ", ".join(dict.fromkeys(chain.from_iterable(w.queues for w in each.workers)))),
            (_("Threads"), lambda each: sum(worker.threads for worker in each.workers)),
            (_("Jobs"), lambda each: sum(worker.running for worker in each.workers)),
            (_("Memory (MiB)"), lambda each: sum(worker.memory or 0 for worker in each.workers) or None),
            (HEARTBEAT, lambda each: round(min(worker.silent for worker in each.workers), 1)),
        ],
        empty=_("No worker is running. Start one with: manage.py rk_worker"),
        actions=("quiet", "resume", "stop"),
        values=[supervisor.target.value for supervisor in all_supervisors],
        offered=[BUTTONS.get(supervisor.state, ("quiet", "stop")) for supervisor in all_supervisors],
    )


def workers_table(workers: Sequence[WorkerInfo], *, linked: bool) -> Table:
    """Return the workers by supervisor, and then other programs. If ``linked``, their jobs link to their pages."""
    return Table.of(
        _("Workers"),
        sorted(workers, key=lambda worker: (not worker.supervisor, worker.host, worker.supervisor_pid)),
        [
            (_("Worker"), _name),
            (_("Host"), _host),
            (_("State"), lambda worker: Lines((STATES.get(worker.state, worker.state), _silence(worker)))),
            (_("Queues"), lambda worker: ", ".join(worker.queues)),
            (_("Threads"), lambda worker: worker.threads or None),
            (_("Jobs"), partial(_jobs, linked=linked)),
            (_("Memory (MiB)"), lambda worker: worker.memory),
            (HEARTBEAT, lambda worker: round(worker.silent, 1)),
        ],
    )


def lost_workers(lost: Sequence[LostWorker]) -> Iterator[Table]:
    """Yield the workers that were lost in the last 24 hours, if there are any."""
    if lost:
        yield Table.of(
            _("Lost workers of the last 24 hours"),
            lost,
            [
                (_("Worker"), _name),
                (_("Host"), _host),
                (_("Queues"), lambda worker: ", ".join(worker.queues)),
                (_("Found lost"), lambda worker: moment(time() - worker.age)),
                (_("Jobs that others took"), lambda worker: worker.jobs),
            ],
        )


def _name(worker: WorkerInfo | LostWorker) -> Lines:
    return Lines((worker.id, _("process %d") % worker.pid))


def _host(worker: WorkerInfo | LostWorker) -> Lines:
    supervisor = _("of supervisor process %d") % worker.supervisor_pid if worker.supervisor_pid else ""
    return Lines((worker.host, supervisor))


def _named(workers: Sequence[WorkerInfo | LostWorker]) -> str:
    return first_of([process_name(worker.host, worker.pid) for worker in workers], NAMED, "; ")


def _silence(worker: WorkerInfo) -> Any:
    return _("for %s") % duration(worker.unresponsive) if worker.state == UNRESPONSIVE else ""


def _jobs(worker: WorkerInfo, *, linked: bool) -> Any:
    cells = [_job(job, linked=linked) for job in worker.held[:MOST_JOBS]]
    more = worker.running - len(cells)
    return Lines([*cells, _("and %d more") % more if more else ""]) if cells else None


def _job(job: RunningJob, *, linked: bool) -> Any:
    age = "" if job.age is None else duration(job.age)
    text = ", ".join(filter(None, (job.task or job.id, age)))
    return Link(text, "queues", {"queue": job.queue, "id": job.id}) if linked else text


def _read_workers() -> Flow[Any]:
    errors: Errors = {}
    return *(yield from read_workers(None, "default", errors, most_bytes=0)), errors


class WorkersPanel(Panel):
    """The workers: their jobs, memory and last heartbeats."""

    slug = "workers"
    title = _("Workers")

    def content(self) -> Iterator[Content]:
        """Yield figures, the workers by supervisor, and those that were lost. Two round trips."""
        errors: Errors = {}
        workers, lost = over("default").run_flow(read_workers(None, "default", errors))
        all_supervisors, linked = supervisors(workers), self.viewer.may(MANAGE)
        yield from figures(workers, all_supervisors, lost)
        yield from queues_page.unreadable(errors)
        yield supervisors_table(all_supervisors)
        if workers:
            yield workers_table(workers, linked=linked)
        yield from lost_workers(lost)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the workers of all queues, and those that were lost. Two round trips."""
        return {"default": _read_workers()}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many workers and supervisors there are, and their running jobs; alarms become alerts."""
        workers, lost, errors = replies["default"]
        all_figures = figures(workers, supervisors(workers), lost)
        return Tile.of([*sorted(all_figures, key=lambda figure: figure.alarm), *queues_page.unreadable(errors)])

    quiet = supervisor_button(methodcaller("send", "quiet"), _("Quiet"))
    resume = supervisor_button(methodcaller("send", "resume"), _("Resume"))
    stop = supervisor_button(methodcaller("send", "stop"), _("Stop"), confirm=True, explained="stop")
