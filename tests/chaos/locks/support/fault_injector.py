"""What can go wrong between processes and a server, one thing after another, chosen at random from a seed."""

import time
from collections import Counter
from random import Random

from tests.chaos.engine.faults import rounds
from tests.chaos.locks.support.history import HistoryFile
from tests.chaos.locks.support.process_pool import ProcessPool
from tests.fixtures.process import Server
from tests.fixtures.proxy import Mode, Proxy


class FaultInjector:
    """Breaks one thing after another, each in its turn, and writes down from when to when."""

    def __init__(self, *, server: Server, proxy: Proxy, pool: ProcessPool, lease: float, seed: int) -> None:
        self.server, self.proxy, self.pool, self.lease = server, proxy, pool, lease
        self.chance = Random(seed)
        self.count: Counter[str] = Counter()
        kinds = [self.pause, self.kill, self.cut, self.flush, self.freeze]
        kinds += [self.reset, self.drop_replies, self.blackhole, self.delay]
        self._coming = rounds(self.chance, kinds)

    def next(self, history_file: HistoryFile) -> None:
        """Let one thing go wrong."""
        fault = next(self._coming)
        began = time.monotonic_ns()
        fault()
        self.count[fault.__name__] += 1
        history_file.note("fault", fault.__name__, at=began, until=time.monotonic_ns())

    def pause(self) -> None:
        """Stop a process, often beyond its leases."""
        with self.pool.paused(self.chance.randrange(self.pool.size)):
            self._wait(0.6, 1.6)

    def kill(self) -> None:
        """Kill a process; another one comes in its place."""
        self.pool.replace(self.chance.randrange(self.pool.size))

    def cut(self) -> None:
        """Cut all connections, a few times."""
        with self.server.client() as client:
            for _ in range(self.chance.randint(1, 5)):
                client.client_kill_filter(_type="normal", skipme=True)
                self._wait(0, 0.1)

    def flush(self) -> None:
        """Let the server forget all scripts."""
        with self.server.client() as client:
            client.script_flush()

    def freeze(self) -> None:
        """Stop the server for a moment."""
        self.server.freeze()
        try:
            self._wait(0.05, 0.5)
        finally:
            self.server.thaw()

    def reset(self) -> None:
        """Reset the connections that go through the proxy."""
        self._break("rst", 0.01, 0.2)

    def drop_replies(self) -> None:
        """Lose replies to commands which are carried out."""
        self._break("drop_replies", 0.05, 0.4)

    def blackhole(self) -> None:
        """Lose commands, without a word."""
        self._break("blackhole", 0.2, 1.4)

    def delay(self) -> None:
        """Let each reply come late."""
        self._break("delay", 0.2, 1.0)

    def _break(self, mode: Mode, least: float, most: float) -> None:
        with self.proxy.fault(mode, seconds=self.chance.uniform(0.01, 0.2)):
            self._wait(least, most)

    def _wait(self, least: float, most: float) -> None:
        time.sleep(self.chance.uniform(least, most) * self.lease)
