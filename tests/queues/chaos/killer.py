"""SIGKILL for children, supervisors, whole machines and the server: in a random order that a seed decides."""

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Literal, NamedTuple

from tests.fixtures.process import Server
from tests.queues.chaos.crew import Crew, Member, wait_until

Kind = Literal["child", "supervisor", "machine", "server"]
ROUND: tuple[Kind, ...] = ("child", "child", "child", "child", "supervisor", "machine", "server")
WHOLE = ("machine", "server")  # all that a worker without children can die of
PATIENCE = 20.0


class Kill(NamedTuple):
    """What was killed, from when to when it was away (ns), which processes went with it, and how many jobs at most."""

    kind: Kind
    at: int
    until: int
    pids: frozenset[int] = frozenset()
    slots: int = 0
    supervisor: int = 0  # its pid


class Killer:
    """Kills one thing after another; each round brings every kind at least once."""

    def __init__(
        self, crew: Crew, server: Server, *, threads: int, kinds: Sequence[Kind], supervised: bool, seed: int
    ) -> None:
        self.crew, self.server, self.threads, self.kinds = crew, server, threads, kinds
        self.supervised = supervised
        self.chance = Random(seed)
        self.kills: list[Kill] = []
        self._coming: list[Kind] = []

    @property
    def count(self) -> Counter[str]:
        """Return how often each kind was killed."""
        return Counter(kill.kind for kill in self.kills)

    def next(self) -> None:
        """Kill one thing."""
        if not self._coming:
            self._coming = [kind for kind in self.kinds if self.supervised or kind in WHOLE]
            self.chance.shuffle(self._coming)
        self.kill(self._coming.pop())

    def kill(self, kind: Kind) -> None:
        """Kill one of this kind."""
        if kind == "server":
            self._kill_server()
        else:
            getattr(self, f"_kill_{kind}")(self._member())

    def _member(self) -> Member:
        if not self.supervised:
            return self.chance.choice(self.crew.members)
        found: list[Member] = []

        def some() -> bool:
            with self.crew.lock:
                found[:] = [one for one in self.crew.members if one.process.poll() is None and one.children()]
            return bool(found)

        if not wait_until(some, PATIENCE):
            raise AssertionError(f"no worker had children within {PATIENCE} s")
        return self.chance.choice(found)

    def _kill_child(self, member: Member) -> None:
        victim = self.chance.choice(sorted(member.children()) or [0])
        if victim:
            self._note("child", {victim}, self.threads, member)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

    def _kill_supervisor(self, member: Member) -> None:
        children = self._stopped(member)
        self._note("supervisor", children, self.threads * len(children), member)
        os.kill(member.pid, signal.SIGKILL)

    def _kill_machine(self, member: Member) -> None:
        children = self._stopped(member)
        everyone = children | {member.pid}
        self._note("machine", everyone, self.threads * max(1, len(children)), member)
        for pid in (member.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _stopped(self, member: Member) -> set[int]:
        # Or it could have another child before it dies.
        os.kill(member.pid, signal.SIGSTOP)
        return member.children()

    def _kill_server(self) -> None:
        began = time.monotonic_ns()
        (pid,) = self.server.pids
        os.kill(pid, signal.SIGKILL)
        time.sleep(self.chance.uniform(0, 0.3))
        self.server.start()
        self.kills.append(Kill("server", began, time.monotonic_ns()))

    def _note(self, kind: Kind, pids: set[int], slots: int, member: Member) -> None:
        now = time.monotonic_ns()
        self.kills.append(Kill(kind, now, now, frozenset(pids), slots, member.pid))


def _is_supervised() -> bool:
    from redis_kit.queues.commands.rk_worker import Command

    return "--processes" in Command().create_parser("manage.py", "rk_worker").format_help()


#: Whether workers consist of a supervisor and children.
SUPERVISED = _is_supervised()
