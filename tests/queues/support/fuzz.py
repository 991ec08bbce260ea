"""Random bytes in a queue's keys, for a real worker: ``python -m tests.queues.support.fuzz 100000``."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

GOOD = b'{"task":"tests.queues.support.tasks.remember","args":[0]}'
STORY = b"~1795182146123456//default 1795182146123/someone\n"
BOMBS = [
    b"[" * 100_000,
    b'{"task":' * 20_000,
    b"1" * 5000,
    b'{"task":"x","task":"y"}',
    b" " * 300_000,
    b'{"task":"tests.queues.support.tasks.remember","args":[' + b"[" * 900 + b"]" * 900 + b"]}",
    b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
]
HEADS = [
    b"%d %d %d %d\n" % numbers
    for numbers in ((0, 2**63, 0, 0), (0, 0, 2**63, 0), (-(10**30), 0, 0, 0), (101, 0, 0, 0), (0, 0, 0, 2**64))
]
HEADS += [b"abc 0 0 0\n", b"0 0 0\n", b"0.5 1e3 0 0\n", b"-0 00 00 00\n", b"0  0 0 0\n", b"\n", b""]
PLACES = [b"inf", b"-inf", b"9007199254740993", b"-1e300", b"0.5"]
CHUNK = 1000
QUEUE = {"MAX_ATTEMPTS": 1, "DEAD_LIMIT": 500, "UNKNOWN_TASK_TTL": 0}


class Filled(NamedTuple):
    """How many jobs a queue was given, and how many places in it without a job."""

    jobs: int
    ghosts: int


def fill(client: Any, queue: Any, count: int, randomness: random.Random) -> Filled:
    """Write jobs straight into a queue's keys; the client must not decode. Most are not fit to be read."""
    ghosts = 0
    for begin in range(0, count, CHUNK):
        with client.pipeline(transaction=False) as pipeline:
            for number in range(begin, min(begin + CHUNK, count)):
                id, is_ghost = _id(number, randomness), randomness.random() < 0.02
                id = b"ghost%d" % number if is_ghost else id
                ghosts += is_ghost
                if not is_ghost:
                    pipeline.hset(queue.key("jobs"), id, _record(number, randomness))
                pipeline.execute_command("ZADD", queue.key("ready"), _place(number, randomness), id)
            pipeline.execute()
    return Filled(client.hlen(queue.key("jobs")), ghosts)


def _id(number: int, randomness: random.Random) -> bytes:
    if number % 4 == 0:
        return randomness.randbytes(randomness.randrange(40))
    odd = (b"%d/../x", b"%d ", b"\n%d", b"%d/", b"/%d", b"%d:\x00", b"{%d}")
    return (odd[number // 8 % len(odd)] if number % 8 == 1 else b"job%d") % number


def _place(number: int, randomness: random.Random) -> bytes:
    return randomness.choice(PLACES) if randomness.random() < 0.01 else b"%d" % number


def _record(number: int, randomness: random.Random) -> bytes:
    kind = number % 7
    if kind == 0:
        return randomness.randbytes(randomness.randrange(100))
    if kind == 1:
        return b"0 0 0 5\n" + randomness.randbytes(randomness.randrange(100))
    if kind == 2:
        return randomness.choice(HEADS) + GOOD
    if kind == 3:
        return b"0 0 0 5\n" + (randomness.choice(BOMBS) if number % 21 == 3 else GOOD[: randomness.randrange(50)])
    record = bytearray(b"0 0 0 5\n" + (STORY if kind == 4 else b"") + GOOD)
    for _ in range(randomness.randrange(1, 4)):
        record[randomness.randrange(len(record))] = randomness.randrange(256)
    return bytes(record)


def drained(queue: Any) -> bool:
    """Say whether a queue has nothing ready, scheduled or running."""
    return not any(queue.counts()[:3])


def ended(queue: Any) -> tuple[int, int]:
    """Return how many jobs were done and how many attempts failed in the last hour."""
    from redis_kit.queues.inspection import queue_stats

    report = queue_stats([queue.name], minutes=60)[queue.name]
    return sum(report.done), sum(report.failed)


def main(count: int, seed: int) -> None:
    """Let a worker of its own drain a queue of a server of its own, and print what became of the jobs."""
    import django

    from redis_kit.core.embedded.server import EmbeddedServer

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.queues.support.worker_settings"
    with EmbeddedServer() as server, tempfile.TemporaryDirectory() as folder:
        os.environ["REDIS_KIT"] = json.dumps({"CONNECTIONS": {"default": {"URL": server.url}}, "QUEUES": QUEUE})
        os.environ["JOURNAL"] = str(Path(folder, "journal"))
        django.setup()
        _run(server, count, seed)


def _run(server: Any, count: int, seed: int) -> None:
    import redis

    from redis_kit.queues import Queue
    from tests.queues.support.tasks import note

    queue, began = Queue("default"), time.monotonic()
    with redis.Redis.from_url(server.url) as client:
        filled = fill(client, queue, count, random.Random(seed))
    print(f"{count} written in {time.monotonic() - began:.1f} s: {filled}")
    command = [sys.executable, "-m", "django", "rk_worker", "--queue-name", "default", "--threads", "4"]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        while not drained(queue) and worker.poll() is None:
            time.sleep(0.2)
        took = time.monotonic() - began
        before, dead = ended(queue), queue.counts().dead
        result = note.enqueue("good")
        good = result.wait_until_finished(10) and result.is_finished
        worker.terminate()
    print(f"{took:.1f} s; done {before[0]}, failed {before[1]}, of {filled.jobs}; {dead} dead jobs kept; seed {seed}")
    print(f"a good job after that was done: {good}; the worker ended with {worker.returncode}")
    assert sum(before) == filled.jobs
    assert dead == min(before[1], QUEUE["DEAD_LIMIT"])
    assert good
    assert worker.returncode == 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
