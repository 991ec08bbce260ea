"""What a log call costs beside NullHandler and QueueHandler, also without a server, and whether every record counts."""

import logging
import logging.handlers
import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.support.measurement import configure, pinned
from benchmarks.support.workers.goals import Goal
from redis_kit.core.embedded.server import EmbeddedServer

ROUNDS, CALLS = 100, 150  # of each handler, in turn, with a pause of a millisecond between turns
KINDS, THREADS = 50, 8
STATES = ("up", "stopped", "frozen", "full")
MEDIAN, HIGH = 20.0, 100.0  # microseconds


def run(records: int = 1_000_000) -> None:
    """Print the microseconds of a call with each handler, with the server in each state, and the exact counts."""
    configure()
    from django.test.utils import override_settings

    with pinned():
        for state in STATES:
            with EmbeddedServer() as server, override_settings(REDIS_KIT=_kit(server)), _broken(server, state):
                _compare(state)
    with EmbeddedServer() as server, override_settings(REDIS_KIT=_kit(server)):
        _count(records)


def _kit(server: EmbeddedServer) -> dict[str, Any]:
    return {"CONNECTIONS": {"default": {"URL": server.url}}}


@contextmanager
def _broken(server: EmbeddedServer, state: str) -> Iterator[None]:
    from redis_kit.core import connections

    call, pid = connections.client().call, server.pid or 0
    if state == "stopped":
        server.stop()
    elif state == "frozen":
        os.kill(pid, signal.SIGSTOP)
    elif state == "full":
        call("CONFIG", "SET", "maxmemory-policy", "noeviction")
        call("CONFIG", "SET", "maxmemory", "1")
    yield
    if state == "frozen":
        os.kill(pid, signal.SIGCONT)


def _compare(state: str) -> None:
    from redis_kit.logs import RedisHandler
    from redis_kit.logs.buffer import buffer

    handlers = {
        "NullHandler": logging.NullHandler(),
        "QueueHandler": logging.handlers.QueueHandler(queue.SimpleQueue()),
        "RedisHandler": RedisHandler(),
    }
    loggers = {name: logging.Logger("shop.orders") for name in handlers}
    for name, handler in handlers.items():
        loggers[name].addHandler(handler)
    times: dict[str, list[int]] = {name: [] for name in handlers}
    for number in range(ROUNDS):
        for name, logger in loggers.items():
            for call in range(CALLS):
                start = time.perf_counter_ns()
                logger.error("Order %d of %s failed after %.1f s", number, "Ann", call)
                times[name].append(time.perf_counter_ns() - start)
            time.sleep(0.001)
    for name, taken in times.items():
        taken.sort()
        median, high = taken[len(taken) // 2] / 1000, taken[len(taken) * 99 // 100] / 1000
        print(f"server {state:8}{name:14}median {median:7.1f} us   p99 {high:7.1f} us   longest {taken[-1] // 1000}")
        if name == "RedisHandler":
            print(Goal(f"median of RedisHandler, server {state}", median, "<=", MEDIAN))
            print(Goal(f"p99 of RedisHandler, server {state}", high, "<=", HIGH))
    buffer.discard()


def _count(records: int) -> None:
    from redis_kit.core import connections, flow
    from redis_kit.logs import Logs, RedisHandler
    from redis_kit.logs.buffer import buffer
    from redis_kit.logs.inspection import read_levels

    logger = logging.Logger("shop.orders")
    stored_before, dropped_before = buffer.stored, buffer.dropped()
    logger.addHandler(RedisHandler())
    kinds = [f"Message {number} of %s" for number in range(KINDS)]

    def write(thread: int) -> None:
        for number in range(thread, records, THREADS):
            kind = number % KINDS
            logger.log(20 + 10 * (kind % 3), kinds[kind], number)

    start = time.perf_counter()
    threads = [threading.Thread(target=write, args=[thread]) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    emitted = time.perf_counter() - start
    while not buffer.flush(60.0):
        pass
    stored, dropped = buffer.stored - stored_before, buffer.dropped() - dropped_before
    levels = sum(flow.run(read_levels(2), connections.client()), Counter())
    in_redis, common = levels.total() - levels["dropped"], sum(each.records for each in Logs().common(2))
    print(f"{records:,} records of {KINDS} kinds by {THREADS} threads in {emitted:.1f} s")
    print(f"{stored:,} stored, {dropped:,} dropped")
    print(f"Redis has {in_redis:,} by level, {common:,} by message, and {levels['dropped']:,} dropped")
    print(Goal("records neither stored nor dropped", abs(records - stored - dropped), "<=", 0))
    print(Goal("records wrong in Redis", abs(stored - in_redis) + abs(stored - common), "<=", 0))
    print(Goal("dropped records wrong in Redis", abs(dropped - levels["dropped"]), "<=", 0))
