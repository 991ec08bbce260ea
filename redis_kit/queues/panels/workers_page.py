"""The content of the dashboard's page about workers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Figure, Lines, Link, Table
from redis_kit.queues.panels.actions import SupervisorTarget

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.workers import RunningJob, WorkerInfo

MOST_JOBS = 10  # of one worker
WORKING, QUIET, STOPPING, DAMAGED = "working", "quiet", "stopping", "damaged"
BUTTONS = {QUIET: ("resume", "stop"), STOPPING: ()}
STATES = {WORKING: _("working"), QUIET: _("quiet"), STOPPING: _("stopping"), DAMAGED: _("damaged")}


class Supervisor(NamedTuple):
    """A supervisor and its worker processes."""

    target: SupervisorTarget
    workers: list["WorkerInfo"]

    @property
    def state(self) -> str:
        """Return working, quiet or stopping; "" if its workers do not report a state."""
        states = {one.state for one in self.workers}
        return next((state for state in (STOPPING, WORKING, QUIET) if state in states), "")


def supervisors(workers: Sequence["WorkerInfo"]) -> list[Supervisor]:
    """Return the supervisors of workers. A worker of another program has none."""
    found: dict[SupervisorTarget, list[WorkerInfo]] = {}
    for one in workers:
        if one.supervisor:
            target = SupervisorTarget(one.host, one.supervisor_pid, one.supervisor)
            found.setdefault(target, []).append(one)
    return [Supervisor(target, found[target]) for target in sorted(found)]


def figures(workers: Sequence["WorkerInfo"], found: Sequence[Supervisor]) -> Iterator[Figure]:
    """Yield how many workers there are, what they do and how much memory they use."""
    quiet = sum(one.state == QUIET for one in found)
    yield Figure(_("Workers"), len(workers))
    yield Figure(_("Supervisors"), len(found), hint=_("%d of them quiet") % quiet if quiet else "")
    yield Figure(_("Running jobs"), sum(len(one.jobs) for one in workers))
    if memory := sum(one.memory or 0 for one in workers):
        yield Figure(_("Memory (MiB)"), memory)
    if back := max((one.clock_back for one in workers), default=0):
        hint = _("Scheduled jobs and the jobs of dead workers are late until the clock has caught up.")
        yield Figure(_("The server's clock went back by (s)"), back, hint=hint, alarm=True)


def supervisors_table(found: Sequence[Supervisor]) -> Table:
    """Return the supervisors, with their buttons."""
    columns = (
        *(_("Supervisor"), _("State"), _("Processes"), _("Queues"), _("Threads")),
        *(_("Jobs"), _("Memory (MiB)"), _("Last heartbeat (s ago)")),
    )
    return Table(
        _("Supervisors"),
        columns,
        [_supervisor(one) for one in found],
        empty=_("No worker is running. Start one with: manage.py rk_worker"),
        actions=("quiet", "resume", "stop"),
        values=[one.target.value for one in found],
        offered=[BUTTONS.get(one.state, ("quiet", "stop")) for one in found],
    )


def worker_processes(found: Sequence[Supervisor], *, linked: bool) -> Iterator[Table]:
    """Yield the workers of each supervisor, at most 100 in all. If ``linked``, their jobs link to their pages."""
    left = MOST_ROWS
    for one in found:
        if left <= 0:
            return
        rows = [_child(worker, linked=linked) for worker in one.workers[:left]]
        left -= len(rows)
        columns = (
            *(_("Worker"), _("State"), _("Queues"), _("Threads")),
            *(_("Jobs"), _("Memory (MiB)"), _("Last heartbeat (s ago)")),
        )
        yield Table(_("Worker processes of %s") % one.target.shown, columns, rows)


def others(workers: Sequence["WorkerInfo"], *, linked: bool) -> Table:
    """Return the workers without a supervisor: other programs that claim jobs."""
    return Table(
        _("Other programs that claim jobs"),
        (_("Worker"), _("Host"), _("Queues"), _("Jobs"), _("Last heartbeat (s ago)")),
        [
            (
                Lines((one.id, STATES[DAMAGED] if one.state == DAMAGED else _("process %d") % one.pid)),
                one.host,
                ", ".join(one.queues),
                _jobs(one.held, linked=linked),
                round(one.silent, 1),
            )
            for one in workers
        ],
    )


def _supervisor(supervisor: Supervisor) -> tuple[Any, ...]:
    queues = dict.fromkeys(name for one in supervisor.workers for name in one.queues)
    return (
        supervisor.target.shown,  # tells its buttons from those of others on its host
        STATES.get(supervisor.state, ""),
        len(supervisor.workers),
        ", ".join(queues),
        sum(one.threads for one in supervisor.workers),
        sum(len(one.jobs) for one in supervisor.workers),
        sum(one.memory or 0 for one in supervisor.workers) or None,
        round(min(one.silent for one in supervisor.workers), 1),
    )


def _child(one: "WorkerInfo", *, linked: bool) -> tuple[Any, ...]:
    return (
        Lines((one.id, _("process %d") % one.pid)),
        STATES.get(one.state, one.state),
        ", ".join(one.queues),
        one.threads,
        _jobs(one.held, linked=linked),
        one.memory,
        round(one.silent, 1),
    )


def _jobs(held: Sequence["RunningJob"], *, linked: bool) -> Any:
    shown = [_job(one, linked=linked) for one in held[:MOST_JOBS]]
    more = len(held) - len(shown)
    return Lines([*shown, _("and %d more") % more if more else ""]) if shown else ""


def _job(one: "RunningJob", *, linked: bool) -> Any:
    text = ", ".join(filter(None, (one.id, one.task, _age(one.age))))
    return Link(text, "queues", {"queue": one.queue, "id": one.id}) if linked else text


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
