"""What the dashboard's page about workers is made of."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Figure, Lines, Link, Table
from redis_kit.queues.panels.actions import SupervisorTarget

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.workers import Held, Worker

MOST_JOBS = 10  # shown of one worker
WORKING, QUIET, STOPPING, DAMAGED = "working", "quiet", "stopping", "damaged"
OFFERED = {QUIET: ("work", "stop"), STOPPING: ()}
STATES = {WORKING: _("working"), QUIET: _("quiet"), STOPPING: _("stopping"), DAMAGED: _("damaged")}


class Crew(NamedTuple):
    """The workers of one supervisor."""

    target: SupervisorTarget
    workers: list["Worker"]

    @property
    def state(self) -> str:
        """Return what its supervisor was told, "" where it does not say."""
        states = {one.state for one in self.workers}
        return next((state for state in (STOPPING, WORKING, QUIET) if state in states), "")


def crews(workers: Sequence["Worker"]) -> list[Crew]:
    """Return the workers that have one, by their supervisor."""
    found: dict[SupervisorTarget, list[Worker]] = {}
    for one in workers:
        if one.supervisor:
            target = SupervisorTarget(one.host, one.supervisor_pid, one.supervisor)
            found.setdefault(target, []).append(one)
    return [Crew(target, found[target]) for target in sorted(found)]


def figures(workers: Sequence["Worker"], found: Sequence[Crew]) -> Iterator[Figure]:
    """Yield how many there are, what they do and how large they are."""
    quiet = sum(crew.state == QUIET for crew in found)
    yield Figure(_("Workers"), len(workers))
    yield Figure(_("Supervisors"), len(found), hint=_("Of these quiet: %d") % quiet if quiet else "")
    yield Figure(_("Jobs in their hands"), sum(len(one.jobs) for one in workers))
    if memory := sum(one.memory or 0 for one in workers):
        yield Figure(_("Memory (MiB)"), memory)
    if back := max((one.clock_back for one in workers), default=0):
        hint = _("Scheduled jobs, and those of workers that died before, are late until it has caught up.")
        yield Figure(_("The server's clock went back by (s)"), back, hint=hint, alarm=True)


def supervisors(found: Sequence[Crew]) -> Table:
    """Return the supervisors, with their buttons."""
    columns = (
        *(_("Supervisor"), _("State"), _("Children"), _("Queues"), _("Threads")),
        *(_("Jobs"), _("Memory (MiB)"), _("Last beat (s ago)")),
    )
    return Table(
        _("Supervisors"),
        columns,
        [_supervisor(crew) for crew in found],
        empty=_("No worker is running. Start one with: manage.py rk_worker"),
        actions=("quiet", "work", "stop"),
        values=[crew.target.value for crew in found],
        offered=[OFFERED.get(crew.state, ("quiet", "stop")) for crew in found],
    )


def children(found: Sequence[Crew], *, linked: bool) -> Iterator[Table]:
    """Yield the workers of each supervisor, 100 at most in all. Where ``linked``, their jobs lead to their pages."""
    left = MOST_ROWS
    for crew in found:
        if left <= 0:
            return
        rows = [_child(one, linked=linked) for one in crew.workers[:left]]
        left -= len(rows)
        columns = (
            *(_("Worker"), _("State"), _("Queues"), _("Threads")),
            *(_("Jobs"), _("Memory (MiB)"), _("Last beat (s ago)")),
        )
        yield Table(_("Children of %s") % crew.target.shown, columns, rows)


def others(workers: Sequence["Worker"], *, linked: bool) -> Table:
    """Return the workers that no supervisor has: other programs which claim jobs."""
    return Table(
        _("Other programs that claim jobs"),
        (_("Worker"), _("Host"), _("Queues"), _("Jobs"), _("Last beat (s ago)")),
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


def _supervisor(crew: Crew) -> tuple[Any, ...]:
    queues = dict.fromkeys(name for one in crew.workers for name in one.queues)
    return (
        crew.target.shown,  # the name that tells its buttons from those of others on its host
        STATES.get(crew.state, ""),
        len(crew.workers),
        ", ".join(queues),
        sum(one.threads for one in crew.workers),
        sum(len(one.jobs) for one in crew.workers),
        sum(one.memory or 0 for one in crew.workers) or None,
        round(min(one.silent for one in crew.workers), 1),
    )


def _child(one: "Worker", *, linked: bool) -> tuple[Any, ...]:
    return (
        Lines((one.id, _("process %d") % one.pid)),
        STATES.get(one.state, one.state),
        ", ".join(one.queues),
        one.threads,
        _jobs(one.held, linked=linked),
        one.memory,
        round(one.silent, 1),
    )


def _jobs(held: Sequence["Held"], *, linked: bool) -> Any:
    shown = [_job(one, linked=linked) for one in held[:MOST_JOBS]]
    more = len(held) - len(shown)
    return Lines([*shown, _("and %d more") % more if more else ""]) if shown else ""


def _job(one: "Held", *, linked: bool) -> Any:
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
