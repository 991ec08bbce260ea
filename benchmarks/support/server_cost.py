"""What operations cost the server: processor time of its main thread by its own figures, and commands by MONITOR."""

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple

from benchmarks.support.workers.server import Server

ROUNDS = 9
SLICE = 0.3  # seconds; the system counts both times in ticks of some ms
COUNTED = 20  # operations under MONITOR

Operations = dict[str, Callable[[], object]]


class Cost(NamedTuple):
    """The cost of one operation, without that of the bare scripts that would take as many round trips."""

    user: float  # us
    system: float  # us
    sent: float  # commands of the client
    run: float  # all commands, with those inside scripts


class Times(NamedTuple):
    """Processor time of the server's main thread, in us."""

    user: float
    system: float

    def since(self, before: "Times", count: int) -> "Times":
        """Return the time of each of ``count`` operations since then."""
        return Times((self.user - before.user) / count, (self.system - before.system) / count)


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

    def _commands(self, operation: Callable[[], object]) -> tuple[float, float]:
        operation()
        with self._server.listening() as ran:
            for _ in range(COUNTED):
                operation()
        sent = ran.sent.total() / COUNTED
        return sent, sent + ran.inside.total() / COUNTED

    def _slice(self, operation: Callable[[], object]) -> Times:
        count, before, end = 0, self._times(), time.perf_counter() + SLICE
        while time.perf_counter() < end:
            operation()
            count += 1
        return self._times().since(before, count)

    def _times(self) -> Times:
        usage = self._client.info("cpu")
        return Times(usage["used_cpu_user_main_thread"] * 1e6, usage["used_cpu_sys_main_thread"] * 1e6)


def _cost(slices: Iterable[tuple[Times, Times]], sent: float, run: float, worth: int) -> Cost:
    own = [Times(with_it.user - sent * bare.user, with_it.system - sent * bare.system) for with_it, bare in slices]
    user, system = median(times.user for times in own), median(times.system for times in own)
    return Cost(user / worth, system / worth, sent / worth, run / worth)
