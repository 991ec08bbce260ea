"""What a fail-over does to locks: ``python -m tests.chaos locks.failover`` tries it and tells in half a minute.

A primary is cut off from its replicas and from the Sentinels, and one client still reaches it. The Sentinels make a
replica the primary, and for a while there are two. The second round has ``min-replicas-to-write``.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import redis
from django.test.utils import override_settings

from redis_kit.core.errors import RedisFailure
from redis_kit.locks import Lease, Lock
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.locks.support import database
from tests.chaos.locks.support.partition import Partition
from tests.fixtures.process import Server, wait_for

ROUNDS = {
    "default settings": (),
    "min-replicas-to-write 1, min-replicas-max-lag 1": ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"),
}
LEASE = 30.0
CUT = 5.0  # seconds until the link is mended
PACE = 0.01  # seconds between two writes


class Writer:
    """Writes one key after another to the side that is cut off, and keeps which were acknowledged."""

    def __init__(self, server: Server) -> None:
        self._client, self._over = server.client(), threading.Event()
        self.acknowledged: list[str] = []
        self.refused: list[float] = []  # when
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._over.wait(PACE):
            key = f"write:{len(self.acknowledged)}"
            try:
                self._client.set(key, "1")
                self.acknowledged.append(key)
            except redis.RedisError:
                self.refused.append(time.monotonic())

    def close(self) -> None:
        """Write no more."""
        self._over.set()
        self._thread.join()
        self._client.close()

    def lost(self, server: Server) -> int:
        """Return how many of the acknowledged writes a server does not have."""
        with server.client() as client:
            return int(client.mget(self.acknowledged).count(None))


class Round:
    """One fail-over, told step by step, each with the seconds since the cut."""

    def __init__(self, name: str, partition: Partition) -> None:
        self.name, self.partition, self.began = name, partition, time.monotonic()

    def run(self) -> None:
        """Cut the primary off, let both sides work, and mend the link."""
        with contextlib.closing(Writer(self.partition.primary)) as writer:
            wait_for(lambda: len(writer.acknowledged) > 20)
            self.began = time.monotonic()
            self.partition.cut()
            self.say("The primary is cut off; one client still reaches it.")
            old = self._taken("old")
            promoted = self.partition.promoted()
            self.say("The Sentinels have made a replica the primary.")
            new = self._taken("new")
            self._compare(old, new)
            time.sleep(max(self.began + CUT - time.monotonic(), 0))
        self.partition.heal(promoted)
        self.say("The link is mended: the old primary follows the new one, and drops what it had.")
        self._count(writer, promoted)
        new.release()
        self.say(f"A later fence is greater than both: {_yes(self._taken('new').fence > max(old.fence, new.fence))}.")

    def say(self, text: str) -> None:
        """Print what happened."""
        print(f"  {time.monotonic() - self.began:5.2f} s  {text}", flush=True)

    def _lock(self, side: str) -> Lock:
        return Lock(self.name, timeout=LEASE, using=side)

    def _taken(self, side: str) -> Lease:
        def taken() -> Lease | None:
            with contextlib.suppress(RedisFailure):  # a new primary refuses until it has a replica, where it is told to
                return self._lock(side).acquire(blocking=False)
            return None

        lease = wait_for(taken)
        self.say(f"A client of the {side} primary takes the lock.")
        return lease

    def _compare(self, old: Lease, new: Lease) -> None:
        in_order = _yes(new.fence > old.fence)
        self.say(f"Both count on it: {_yes(old.held and new.held)}. The later fence is greater: {in_order}.")
        self._write([("old", old), ("new", new), ("old", old)])
        try:
            old.release()
            later = self._lock("old").acquire(blocking=False)
        except RedisFailure as error:
            self.say(f"The old primary gives no leases any more: {str(error).rpartition(': ')[2]}")
        else:
            self.say("The client of the old primary takes it once more.")
            self._write([("old", later), ("new", new)])

    def _write(self, holders: Sequence[tuple[str, Lease]]) -> None:
        from tests.chaos.locks.worker.guarded_rows import Rows  # a model, which needs the settings

        for side, lease in holders:
            answer = Rows().write(name=self.name, lease=lease, writer=side)
            self.say(f"Fenced write of the holder on the {side} side: {'accepted' if answer else 'refused'}.")

    def _count(self, writer: Writer, promoted: Server) -> None:
        refused = f"refused after {writer.refused[0] - self.began:.2f} s" if writer.refused else "never refused"
        lost = f"{writer.lost(promoted)} of {len(writer.acknowledged)} acknowledged ones are lost"
        self.say(f"Writes to the old primary were {refused}; {lost}.")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


@dataclass(frozen=True)
class Plan(program.Plan):
    """Both rounds, always."""


def run(plan: Plan) -> Outcome:
    """Run both rounds; what they came to is printed on the way."""
    database.create(json.loads(os.environ["TEST_DATABASE"])["NAME"], ROUNDS)
    for name, options in ROUNDS.items():
        print(f"With {name}:")
        with contextlib.closing(Partition(options)) as partition:
            connections = {"old": {"URL": partition.primary.url}, "new": partition.connection}
            with override_settings(REDIS_KIT={"CONNECTIONS": connections}):
                Round(name, partition).run()
    return Outcome(f"{len(ROUNDS)} rounds", {})
