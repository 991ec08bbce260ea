"""Values of the right type that make no sense, in every key of a queue: no call fails but by an error of the kit."""

import contextlib
import random

import pytest
import redis

from redis_kit.core.errors import KeyConflict
from redis_kit.queues import LeaseLost, Queue, known_queues, reports_of, workers
from redis_kit.queues.ended import ended
from redis_kit.queues.worker.source import Source
from tests.queues.jobs.tasks import note

pytestmark = pytest.mark.once

ROUNDS = 80
TEXTS = [
    b"",
    b"x",
    b"-1",
    b"1 2 3",
    b"0 0 0 5\n{}",
    b"nan",
    b"inf",
    b"9" * 40,
    b"a/b/c/d",
    b"\xff\x00",
    b"{",
    b"1.5 {}",
]
NUMBERS = ["inf", "-inf", "1e300", "-5", "0.5", "253402300799000", "9007199254740993"]
HASHES = ("jobs", "info", "settled", "minutes", "reasons", "orders", "cancels", "result:x")
ZSETS = ("ready", "scheduled", "running", "dead", "workers")


@pytest.fixture
def raw(kit):
    """A client that leaves bytes as they are."""
    with contextlib.closing(redis.Redis.from_url(kit.url)) as client:
        yield client


def damage(raw, queue, randomness):
    """Write a few values into a few keys, as nobody but an enemy would."""
    known = [b"x", b"w", b"\xff/", b"", *raw.hkeys(queue.key("jobs")), *raw.zrange(queue.key("workers"), 0, -1)]
    for part in randomness.sample(HASHES, 3):
        raw.hset(queue.key(part), randomness.choice([*known, *TEXTS]), randomness.choice(TEXTS))
    for part in randomness.sample(ZSETS, 3):
        score, member = randomness.choice(NUMBERS), randomness.choice([*known, *TEXTS])
        raw.execute_command("ZADD", queue.key(part), score, member)
    for part in randomness.sample(("sequence", "paused"), randomness.randrange(2)):
        raw.set(queue.key(part), randomness.choice(TEXTS), px=randomness.choice([None, 20]))
    if randomness.random() < 0.2:
        raw.rpush(queue.key("signal"), b"\xff")


def calls(queue, source, job):
    """Return what a caller, a worker and the dashboard do with a queue."""
    yield lambda: queue.put(1, delay=0.001)
    yield lambda: queue.put(1, id="x")
    yield lambda: queue.claim(5, worker="w")
    yield lambda: queue.ack(job)
    yield lambda: queue.nack(job, delay=0.001)
    yield lambda: queue.nack(job, max_attempts=1)
    yield lambda: source.exchange(5, [ended(job, b"1", 1000, source=0)])
    yield lambda: source.exchange(0)
    yield lambda: queue.beat(worker="w")
    yield lambda: queue.leave(worker="w")
    yield lambda: queue.find(job.id)
    yield lambda: queue.remove("x")
    yield lambda: queue.run_now("x")
    yield lambda: queue.requeue_dead(5)
    yield lambda: queue.resume()
    yield lambda: queue.paused()
    yield lambda: [queue.peek(10, state=state) for state in ("ready", "scheduled", "running", "dead")]
    yield lambda: queue.dead()
    yield lambda: queue.counts()
    yield lambda: (known_queues(), reports_of([queue.name]), workers([queue.name]))


def test_values_that_make_no_sense_fail_nowhere_or_as_a_conflict(kit, raw):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    kit.options(QUEUES={"DEAD_AFTER": 0.2, "BEAT": 0.05, "DEAD_LIMIT": 3})
    for _ in range(ROUNDS):
        queue = Queue("default")
        source = Source("default", worker="w", about="{}")
        note.enqueue("x")
        (job,) = queue.claim(worker="w")
        for call in randomness.sample([*calls(queue, source, job)], 12):
            damage(raw, queue, randomness)
            fine(call)
        raw.delete(*raw.scan_iter(f"{kit.prefix}:*", count=1000))


def fine(call):
    """Make a call that may say that a key is not the kit's, or a claim is gone."""
    with contextlib.suppress(KeyConflict, LeaseLost):
        call()
