"""Points at which a process may be told to die, as if the machine had lost power, to show that no job is lost there.

``REDIS_KIT_FAILPOINT=<name>[:<nth>]`` in the environment: a process that comes to the point for the nth time (the first
one, unless it says) gets SIGKILL. With ``REDIS_KIT_FAILPOINT_ONCE=<path>`` that happens once in all processes together:
to the one that can make the file, which then says which process, and when on the clock that all share, in ns.
"""

import os
import signal
import time
from collections.abc import Callable
from itertools import count

_NOTHING: dict[str, None] = {}  # its get() is a function that does nothing, and costs as little as one can
POINT, ONCE = "REDIS_KIT_FAILPOINT", "REDIS_KIT_FAILPOINT_ONCE"
CHILD = (
    "claimed",  # the answer to a claim is here, nothing of it is noted
    "begun",  # a job is on the board, its task has not been called
    "called",  # the task has returned, nothing of that is noted
    "noted",  # the outcome is on the board
    "before_exchange",  # outcomes are about to be sent
    "exchanged",  # their answer is here, the board still holds them
    "before_nack",
    "nacked",
    "handed_over",  # another system has taken a job, nothing of that is noted
    "forked",  # a child's first statement
)
SUPERVISOR = (
    "before_heartbeat",
    "child_died",  # noticed, nothing was done about it
    "outcomes_sent",  # those on its board were sent, its jobs have not been returned
    "reaped",  # they have, and no other child was forked
)
POINTS = CHILD + SUPERVISOR
OF_STEPS = (
    "step_begun",  # a workflow knows that a step begins, its task has not been called
    "step_recorded",  # a workflow knows that a step has succeeded, the jobs that are due now are not in their queues
    "step_sent",  # they are, the job of the step has not been acknowledged
)


def armed(setting: str, once: str = "") -> Callable[[str], None]:
    """Return the function that kills this process at the point which the setting names. Raises ValueError."""
    name, _, nth = setting.partition(":")
    if name not in POINTS + OF_STEPS or (nth and not nth.isdecimal()):
        raise ValueError(
            f"{POINT}={setting!r}: expected <name>[:<nth>] with one of the names {', '.join(POINTS + OF_STEPS)}."
        )
    times = count(1)

    def reach(point: str) -> None:
        if point == name and next(times) == int(nth or 1) and (not once or _is_first(once)):
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _is_first(path: str) -> bool:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.write(file, b"%d %d\n" % (os.getpid(), time.monotonic_ns()))
    return True


#: Called by the worker at each point with its name.
reach: Callable[[str], object] = _NOTHING.get
if os.environ.get(POINT):
    reach = armed(os.environ[POINT], os.environ.get(ONCE, ""))
