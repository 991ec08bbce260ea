"""What operations cost the server: processor time of its main thread by its own figures, and commands by MONITOR."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from benchmarks.support.workers.server import Server

ROUNDS = 9
SLICE = 0.3  # seconds; the system counts both times in ticks of some ms
PREPARED = 100  # calls at most for which something is made at once
COUNTED = 20  # operations under MONITOR


class Prepared(NamedTuple):
    """An operation on something that is made before, for many calls, and is not part of the cost."""

    make: Callable[[int], Iterable[Any]]
    call: Callable[[Any], object]


Operation = Callable[[], object] | Prepared
Operations = dict[str, Operation]


class Part(NamedTuple):
    """Operations that are compared, and the goals for them: name, peer, and the most as a multiple of the peer's.

    With ``whole`` the goals are about calls with their round trips, not about what they cost beyond those.
    """

    title: str
    operations: Operations
    goals: tuple[tuple[str, str, float], ...] = ()
    worth: int = 1
    whole: bool = False


class Cost(NamedTuple):
    """The cost of one operation, without that of the bare scripts that would take as many round trips."""

    user: float  # us
    system: float  # us
    both: float  # us; the kernel knows their sum exactly, and splits it by samples
    whole: float  # us; the sum with the cost of the round trips
    sent: float  # commands of the client
    run: float  # all commands, with those inside scripts


class Times(NamedTuple):
    """Processor time of the server's main thread, in us."""

    user: float
    system: float


class Meter:
    """Measures operations in short slices, in turn, so that a slow moment of the machine hits all."""

    def __init__(self, server: Server) -> None:
        self._server, self._client = server, server.client
        self._digest = self._client.script_load("return 1")

    def costs(self, operations: Operations, *, worth: int = 1) -> dict[str, Cost]:
        """Return the median cost of each operation; a call is ``worth`` several."""
        commands = {name: self._commands(operation) for name, operation in operations.items()}
        slices: dict[str, list[tuple[Times, Times]]] = {name: [] for name in operations}
        for _ in range(ROUNDS):
            bare = self._slice(self._bare)
            for name, operation in operations.items():
                slices[name].append((self._slice(operation), bare))
        return {name: _cost(slices[name], *commands[name], worth) for name in operations}

    def _bare(self) -> None:
        self._client.evalsha(self._digest, 1, "bench:bare")

    def _commands(self, operation: Operation) -> tuple[float, float]:
        for call in calls(operation, 1):
            call()
        todo = calls(operation, COUNTED)
        with self._server.listening() as ran:
            for call in todo:
                call()
        sent = ran.sent.total() / len(todo)
        return sent, sent + ran.inside.total() / len(todo)

    def _slice(self, operation: Operation) -> Times:
        count, user, system, end = 0, 0.0, 0.0, time.perf_counter() + SLICE
        while time.perf_counter() < end:
            todo, done, before = calls(operation, PREPARED), 0, self._times()
            for call in todo:
                call()
                done += 1
                if time.perf_counter() > end:
                    break
            after, count = self._times(), count + done
            user, system = user + after.user - before.user, system + after.system - before.system
        return Times(user / count, system / count)

    def _times(self) -> Times:
        usage = self._client.info("cpu")
        return Times(usage["used_cpu_user_main_thread"] * 1e6, usage["used_cpu_sys_main_thread"] * 1e6)


def calls(operation: Operation, count: int) -> Sequence[Callable[[], object]]:
    """Return as many calls of an operation, after making what they need."""
    if not isinstance(operation, Prepared):
        return [operation] * count
    return [partial(operation.call, made) for made in operation.make(count)]


def _cost(slices: Iterable[tuple[Times, Times]], sent: float, run: float, worth: int) -> Cost:
    own = [Times(with_it.user - sent * bare.user, with_it.system - sent * bare.system) for with_it, bare in slices]
    user, system = median(times.user for times in own), median(times.system for times in own)
    both = median(times.user + times.system for times in own)
    whole = median(with_it.user + with_it.system for with_it, _ in slices)
    return Cost(user / worth, system / worth, both / worth, whole / worth, sent / worth, run / worth)
