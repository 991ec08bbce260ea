"""SIGKILL for children, supervisors, whole machines and the server: in a random order that a seed decides."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from tests.chaos.engine import faults
from tests.chaos.engine.stage import wait_until
from tests.chaos.queues.support import history
from tests.chaos.queues.support.workers import Fleet, Supervisor
from tests.fixtures.process import Server

Kind = Literal["child", "supervisor", "machine", "server"]
ROUND: tuple[Kind, ...] = ("child", "child", "child", "child", "supervisor", "machine", "server")
WHOLE = ("machine", "server")  # all that a worker without children can die of
PATIENCE = 20.0
BUSY = 1.0  # seconds in which to wait for one that is in the middle of a job


class Kill(NamedTuple):
    """What was killed, from when to when it was away (ns), which processes went with it, and how many jobs at most."""

    kind: Kind
    at: int
    until: int
    pids: frozenset[int] = frozenset()
    slots: int = 0
    supervisor: int = 0  # its pid


class Aim(NamedTuple):
    """What is killed: which kinds, and of how many in a hundred it is known that they are in the middle of a job."""

    kinds: Sequence[Kind] = ROUND
    supervised: bool = True
    busy: int = 50


class FaultInjector:
    """Kills one thing after another; each round brings every kind at least once."""

    def __init__(self, fleet: Fleet, server: Server, history_file: Path, *, threads: int, aim: Aim, seed: int) -> None:
        self.fleet, self.server, self.history_file, self.threads, self.aim = fleet, server, history_file, threads, aim
        self.chance = Random(seed)
        self.kills: list[Kill] = []
        self._coming = faults.rounds(self.chance, [kind for kind in aim.kinds if aim.supervised or kind in WHOLE])

    def next(self) -> None:
        """Kill one thing."""
        self.kill(next(self._coming))

    def kill(self, kind: Kind) -> None:
        """Kill one of this kind."""
        if kind == "server":
            self._kill_server()
        else:
            getattr(self, f"_kill_{kind}")(*self._member())

    def _member(self) -> tuple[Supervisor, int]:
        """Return a worker that works, and a child of it: the worker itself where it has none."""
        found: list[tuple[Supervisor, int]] = []
        if self.chance.randrange(100) < self.aim.busy:
            wait_until(lambda: self._look(found, history.busy(self.history_file)), BUSY)
        if not found and not wait_until(lambda: self._look(found, None), PATIENCE):
            raise AssertionError(f"no worker had children within {PATIENCE} s")
        return self.chance.choice(found)

    def _look(self, found: list[tuple[Supervisor, int]], wanted: set[int] | None) -> bool:
        with self.fleet.lock:
            alive = [supervisor for supervisor in self.fleet.supervisors if supervisor.process.poll() is None]
            pairs = [
                (supervisor, pid)
                for supervisor in alive
                for pid in sorted(supervisor.children() if self.aim.supervised else {supervisor.pid})
            ]
        found[:] = [(supervisor, pid) for supervisor, pid in pairs if wanted is None or pid in wanted]
        return bool(found)

    def _kill_child(self, supervisor: Supervisor, victim: int) -> None:
        self._note("child", {victim}, self.threads, supervisor)
        faults.kill(victim)

    def _kill_supervisor(self, supervisor: Supervisor, _: int) -> None:
        children = self._stopped(supervisor)
        self._note("supervisor", children, self.threads * len(children), supervisor)
        os.kill(supervisor.pid, signal.SIGKILL)
        supervisor.process.wait()

    def _kill_machine(self, supervisor: Supervisor, _: int) -> None:
        children = self._stopped(supervisor)
        everyone = children | {supervisor.pid}
        if not self.aim.supervised and self.aim.busy == 100 and supervisor.pid not in history.busy(self.history_file):
            os.kill(supervisor.pid, signal.SIGCONT)  # its job came to an end in this very moment
            self.kill("machine")
            return
        self._note("machine", everyone, self.threads * max(1, len(children)), supervisor)
        faults.kill(supervisor.pid, *children)
        supervisor.process.wait()

    def _stopped(self, supervisor: Supervisor) -> set[int]:
        # Or it could have another child before it dies.
        os.kill(supervisor.pid, signal.SIGSTOP)
        return supervisor.children()

    def _kill_server(self) -> None:
        began = time.monotonic_ns()
        faults.restart(self.server, self.chance.uniform(0, 0.3))
        self.kills.append(Kill("server", began, time.monotonic_ns()))

    def _note(self, kind: Kind, pids: set[int], slots: int, supervisor: Supervisor) -> None:
        now = time.monotonic_ns()
        self.kills.append(Kill(kind, now, now, frozenset(pids), slots, supervisor.pid))


def _is_supervised() -> bool:
    from redis_kit.queues.commands.rk_worker import Command

    return "--processes" in Command().create_parser("manage.py", "rk_worker").format_help()


#: Whether workers consist of a supervisor and children.
SUPERVISED = _is_supervised()
