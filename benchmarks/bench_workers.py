"""Workers as processes of their own: drains, starts, lateness, large queues, memory and commands, with their goals."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.support.workers import command_counts, drain, large_queues, latency
from benchmarks.support.workers.goals import Goal, show_delays, show_drains
from benchmarks.support.workers.processes import folder
from benchmarks.support.workers.server import Server, median, on_tcp
from benchmarks.support.workers.testbed import Setup, TestBed

FORGOTTEN, KEPT = Setup("tasks without results", "kit", "forgotten-8"), Setup("tasks", "kit", "kept-8")
ONE_THREAD = Setup("tasks without results, one thread", "kit", "forgotten-1")
TWO_THREADS = Setup("tasks without results, two threads", "kit", "forgotten-2")
ROUNDS = 3
PARTS = ("drains", "large", "weights", "scaling", "starts", "schedules", "backlog", "fairness", "commands")


def run(cases: str = "") -> None:
    """Print a table per case, then the goals: all cases, or the named ones, as in ``workers:drains,starts``."""
    goals: list[Goal] = []
    with folder() as place:
        with on_tcp(one_core=True) as server:
            for case in (drains, large, weights):
                goals += _if_wanted(case, cases, server, place)
        with on_tcp(one_core=False) as server:
            for case in (scaling, starts, schedules, backlog, fairness, commands):
                goals += _if_wanted(case, cases, server, place)
    for goal in goals:
        print(goal)
    print()


def _if_wanted(case: Callable[[Server, Path], list[Goal]], cases: str, server: Server, place: Path) -> list[Goal]:
    return case(server, place) if not cases or case.__name__ in cases.split(",") else []


def drains(server: Server, place: Path) -> list[Goal]:
    """One process, worker and server on one core."""
    results = drain.side_by_side(server, [(setup, 1) for setup in (FORGOTTEN, ONE_THREAD, KEPT)], place, rounds=ROUNDS)
    show_drains(results)
    without, with_results = max(results[0].ratio, results[1].ratio), results[2].ratio
    return [
        Goal("drain without results, one core, to a PING", without, ">=", 1.5),
        Goal("drain with results, one core, to a PING", with_results, ">=", 1.0),
    ]


def scaling(server: Server, place: Path) -> list[Goal]:
    """One process and two, on all cores."""
    each = [(FORGOTTEN, 1), (FORGOTTEN, 2), (KEPT, 1), (KEPT, 2)]
    single, double, single_stored, double_stored = results = drain.side_by_side(server, each, place, rounds=ROUNDS)
    show_drains(results)
    return [
        Goal("drain without results, all cores, to a PING", single.ratio, ">=", 1.5),
        Goal("drain with results, all cores, to a PING", single_stored.ratio, ">=", 1.0),
        Goal("two processes to one, without results", double.rate / single.rate, ">=", 1.7),
        Goal("two processes to one, with results", double_stored.rate / single_stored.rate, ">=", 1.7),
    ]


def starts(server: Server, place: Path) -> list[Goal]:
    """Jobs for an idle worker."""
    rounds = [latency.idle_start(_bed(server, FORGOTTEN, place)) for _ in range(ROUNDS)]
    show_delays("start of a job by an idle worker, ms, from the call's return", [after for after, _ in rounds])
    show_delays("start of a job by an idle worker, ms, from the call's beginning", [call for _, call in rounds])
    return [
        Goal("idle start, p50 ms after enqueue returned", median([delays.p50 for delays, _ in rounds]), "<=", 1),
        Goal("idle start, p99 ms after enqueue returned", median([delays.p99 for delays, _ in rounds]), "<=", 5),
    ]


def schedules(server: Server, place: Path) -> list[Goal]:
    """Jobs due at random moments."""
    rounds = [latency.lateness(_bed(server, FORGOTTEN, place)) for _ in range(ROUNDS)]
    show_delays(f"lateness of {latency.SCHEDULED:,} jobs due in {latency.WITHIN:g} s, ms", rounds)
    return [
        Goal("lateness, p50 ms", median([delays.p50 for delays in rounds]), "<=", 2),
        Goal("lateness, p99 ms", median([delays.p99 for delays in rounds]), "<=", 10),
        Goal("lateness, longest ms", median([delays.longest for delays in rounds]), "<=", 50),
        Goal("lateness, earliest ms", min(delays.shortest for delays in rounds), ">=", 0),
    ]


def large(server: Server, place: Path) -> list[Goal]:
    """A million scheduled jobs beside none."""
    slower = large_queues.slowed_by_many()
    server.flush()
    return [
        Goal(f"{name}: slower by {large_queues.SCHEDULED:,} scheduled", by, "<=", 1.3) for name, by in slower.items()
    ]


def backlog(server: Server, place: Path) -> list[Goal]:
    """Many jobs that are overdue at once."""
    rounds = [large_queues.overdue(_bed(server, FORGOTTEN, place)) for _ in range(ROUNDS)]
    for result in rounds:
        print(
            f"overdue: {result.rate:,.0f} promoted/s, longest script {result.longest:.1f} ms, "
            f"PING p99 {result.pings:.1f} ms"
        )
    print()
    server.flush()
    return [
        Goal("overdue jobs promoted a second", median([result.rate for result in rounds]), ">=", 10_000),
        Goal("longest script at the same time, ms", median([result.longest for result in rounds]), "<=", 5),
    ]


def weights(server: Server, place: Path) -> list[Goal]:
    """The server's memory per waiting job."""
    weights = large_queues.weight(server, [_bed(server, setup, place) for setup in (FORGOTTEN, KEPT)])
    server.flush()
    return [Goal(f"bytes of {name}", size, "<=", 300) for name, size in weights.items()]


def fairness(server: Server, place: Path) -> list[Goal]:
    """Short jobs beside a long one."""
    goals = []
    for setup, processes in ((TWO_THREADS, 1), (ONE_THREAD, 2)):
        bed = _bed(server, setup, place)
        longest = max(latency.behind_a_long_one(bed, processes) for _ in range(ROUNDS))
        where = "two threads" if processes == 1 else "two processes of one thread"
        goals.append(Goal(f"longest wait behind a job of 10 s, {where}, ms", longest, "<=", 100))
    return goals


def commands(server: Server, place: Path) -> list[Goal]:
    """Commands of a busy worker and of an idle one."""
    goals = []
    for setup in (FORGOTTEN, KEPT):
        bed = _bed(server, setup, place)
        counts = command_counts.commands(bed, bed.fill(3000))
        names = ", ".join(f"{name} {number:.3f}" for name, number in counts.names.items())
        print(f"{setup.title}: per job {counts.sent:.3f} sent ({names}), {counts.run:.1f} run", end="")
        print(f"; idle {counts.idle:.1f}/s")
        goals.append(Goal(f"commands sent per job, {setup.title}", counts.sent, "<=", 0.2))
        goals.append(Goal(f"commands a second when idle, {setup.title}", counts.idle, "<=", 1.0))
    print()
    return goals


def _bed(server: Server, setup: Setup, place: Path) -> TestBed:
    own = place / f"{setup.peer}-{setup.variant}"
    own.mkdir(exist_ok=True)
    return TestBed(server, setup, own)
