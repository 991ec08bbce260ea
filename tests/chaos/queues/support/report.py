"""What a run came to, in a few lines."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.chaos.queues.support import checker
from tests.chaos.queues.support.checker import Case
from tests.chaos.queues.support.executions import SECOND, Run


def told(case: Case, seconds: float) -> str:
    """Return the figures of a case."""
    acknowledged = sum(sent.id is not None for sent in case.sent)
    kills = Counter(kill.kind for kill in case.kills)
    declared = sum(before.failed for before, _ in case.repeats)
    untold = sum(_is_untold(case, before) for before, _ in case.repeats)
    killed = len(case.repeats) - declared - untold
    lines = [
        f"{acknowledged:,} jobs acknowledged, {len(case.sent) - acknowledged} whose answer got lost; {seconds:.1f} s",
        f"killed: {', '.join(f'{kind} {count}' for kind, count in sorted(kills.items())) or 'nobody'}",
        f"lost {len(list(checker.lost(case)))}, with two outcomes {len(list(checker.double(case)))}, "
        f"dead {len(case.state.dead)}, done {case.state.done:,}",
        f"executions again {len(case.repeats):,}: {declared:,} after a failure, {killed} after a kill, "
        f"of {sum(kill.slots for kill in case.kills)} allowed, {untold} done and not yet told with a whole machine",
        *(f"begun again after a {kind} was killed: {spread(times)}" for kind, times in sorted(times_of(case).items())),
    ]
    return "\n".join(lines)


def _is_untold(case: Case, run: Run) -> bool:
    if run.failed or run.kill is None:
        return False
    return run.ended is not None and not checker.is_remembered(case, run.kill)


def times_of(case: Case) -> dict[str, list[float]]:
    """Return the seconds from each kind of kill until what it interrupted began again."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for run, again in checker.interrupted(case):
        if run.kill and again:
            found[run.kill.kind].append((again.begun - run.kill.at) / SECOND)
    return dict(found)


def spread(times: Sequence[float]) -> str:
    """Return how a few times are spread."""
    ordered = sorted(times)
    p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
    return f"p50 {p50:.3f} s, p99 {p99:.3f} s, most {ordered[-1]:.3f} s, of {len(ordered)}"
