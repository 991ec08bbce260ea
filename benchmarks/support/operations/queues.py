"""Queues: the calls in the life of one job and of a hundred, and reads, beside the shortest scripts of the same job."""

from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.support.server_cost import Operations, Part, Prepared
from benchmarks.support.workers.server import Server
from redis_kit.core import flow
from redis_kit.core.flow import Flow
from redis_kit.queues import Job, Queue
from redis_kit.queues.engine import calls, enqueue
from redis_kit.queues.engine.ids import this_process
from redis_kit.queues.engine.unique import PutResult, key_of_call
from redis_kit.queues.features.unknown import middleware as unknown
from redis_kit.queues.inspection import list_workers, queue_stats
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, send_heartbeats

BATCH = 100
CALLS = 20  # for which jobs are put at once
QUEUES = 10  # that are filled before a slice, for calls that empty one
PUT = "redis.call('ZADD', KEYS[1], 1, ARGV[1]) return redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])"
TAKE = "return redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')"
END = "return redis.call('LREM', KEYS[1], 1, ARGV[1])"
RETURN = "redis.call('LREM', KEYS[1], 1, ARGV[1]) return redis.call('LPUSH', KEYS[2], ARGV[1])"
DELETE = "redis.call('ZREM', KEYS[1], ARGV[1]) return redis.call('HDEL', KEYS[2], ARGV[1])"
MOVE = "redis.call('ZREM', KEYS[1], ARGV[1]) return redis.call('ZADD', KEYS[2], 1, ARGV[1])"
TAKE_MANY = """
for _ = 1, ARGV[1] do redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT') end
local taken = redis.call('LRANGE', KEYS[2], 0, -1)
for _, job in ipairs(taken) do redis.call('LREM', KEYS[2], 1, job) end
return taken
"""
READ = "return redis.call('HMGET', KEYS[2], unpack(redis.call('ZRANGE', KEYS[1], 0, 99)))"
GOALS = (
    ("kit: put", "script: ZADD, HSET", 2.0),
    ("kit: claim; ack", "scripts: LMOVE; LREM", 3.0),
    ("kit: claim; ack, of two groups", "kit: claim; ack", 1.6),
)


def queues(server: Server) -> Part:
    """Return the calls that one job needs."""
    queue, ended, fair, taken, numbers = *map(Queue, ("bench", "bench ended", "bench fair", "bench taken")), count()
    put, take, end = map(server.client.register_script, (PUT, TAKE, END))
    ended.put_many({"n": number} for number in range(100_000))
    for group in ("large", "small"):
        taken.put_many(({"n": number} for number in range(50_000)), group=group)
    server.client.lpush("bench:waiting", *range(100_000))
    operations: Operations = {
        "script: ZADD, HSET": lambda: put(["bench:zset", "bench:hash"], [next(numbers), '{"n":1}']),
        "kit: put": lambda: queue.put({"n": next(numbers)}),
        "kit: put, delayed": lambda: queue.put({"n": next(numbers)}, delay=3600),
        "kit: put, of a group": lambda: fair.put({"n": next(numbers)}, group="a"),
        "kit: put, from an outbox": lambda: queue.run_flow(from_outbox(queue, next(numbers))),
        "kit: put, unique": lambda: queue.put({"n": next(numbers)}, unique=f"key{next(numbers) % 100}"),
        "scripts: LMOVE; LREM": lambda: end(["bench:hand"], [take(["bench:waiting", "bench:hand"])]),
        "kit: claim; ack": lambda: ended.ack(*ended.claim()),
        "kit: claim; ack, of two groups": lambda: taken.ack(*taken.claim()),
    }
    return Part("queues", operations | _bare(server) | _running() | _waiting() | _workers(), GOALS)


def from_outbox(queue: Queue, number: int) -> Flow[PutResult]:
    """Return the flow that puts a call which is in an outbox: Redis then knows for a while that it was sent."""
    job = enqueue.job({"n": number})
    return enqueue.put_one(queue, job, key_of_call(job[0]), own=True)


def _bare(server: Server) -> Operations:
    """Return the shortest scripts for the verbs of a job, each on one of a few entries."""
    client = server.client
    back, delete, move = map(client.register_script, (RETURN, DELETE, MOVE))

    def in_hand(most: int) -> range:
        client.delete("bench:in hand")
        client.lpush("bench:in hand", *range(most))
        return range(most)

    def stored(most: int) -> range:
        client.zadd("bench:ready", {str(number): number for number in range(most)})
        client.hset("bench:jobs", mapping={str(number): "{}" for number in range(most)})
        return range(most)

    return {
        "script: LREM, LPUSH": Prepared(in_hand, lambda job: back(["bench:in hand", "bench:back"], [job])),
        "script: ZREM, HDEL": Prepared(stored, lambda job: delete(["bench:ready", "bench:jobs"], [job])),
        "script: ZREM, ZADD": Prepared(stored, lambda job: move(["bench:ready", "bench:moved"], [job])),
    }


def _running() -> Operations:
    """Return the verbs of a job that a worker has claimed."""
    operations: Operations = {"kit: claim": Prepared(*_claiming("claim"))}
    made = {name: _worker_queue(name) for name in ("ack", "nack", "bury", "defer", "return")}
    verbs: dict[str, Callable[[Any], object]] = {
        "ack": made["ack"].ack,
        "nack": lambda job: made["nack"].nack(job, max_attempts=1000),
        "bury": lambda job: made["bury"].nack(job, max_attempts=1, error="ValueError"),
        "defer": lambda job: made["defer"].run_flow(unknown.defer(made["defer"], job, "bench.unknown(1)", 0)),
        "return": lambda job: made["return"].release([job]),
    }
    titles = {"bury": "nack, last attempt", "return": "return of a job that was not begun"}
    for name, verb in verbs.items():
        operations[f"kit: {titles.get(name, name)}"] = Prepared(_claimed(made[name]), verb)
    return operations


def _claiming(name: str) -> tuple[Callable[[int], Any], Callable[[Any], object]]:
    queue = Queue(f"bench {name}")

    def ready(most: int) -> range:
        queue.sign_off()
        queue.put_many({"n": number} for number in range(queue.counts().ready, 2 * most))
        return range(most)

    return ready, lambda _: queue.claim()


def _claimed(queue: Queue) -> Callable[[int], list[Job]]:
    def claim(most: int) -> list[Job]:
        queue.sign_off()
        queue.put_many({"n": number} for number in range(queue.counts().ready, 2 * most))
        return queue.claim(most)

    return claim


def _waiting() -> Operations:
    """Return the verbs of a job that waits, and reads of such jobs."""
    made = {name: Queue(f"bench {name}") for name in ("cancel", "delete", "run_now", "requeue")}
    read = Queue("bench read")
    ids = read.put_many({"n": number} for number in range(BATCH))

    def dead(most: int) -> list[str]:
        queue = made["requeue"]
        queue.purge("ready")
        queue.put_many({"n": number} for number in range(most))
        jobs = queue.claim(most)
        for job in jobs:
            queue.nack(job, max_attempts=1)
        return [job.id for job in jobs]

    def put(name: str, delay: float = 0) -> Callable[[int], list[str]]:
        return lambda most: made[name].put_many(({"n": number} for number in range(most)), delay=delay)

    return {
        "kit: cancel": Prepared(put("cancel"), made["cancel"].cancel),
        "kit: delete": Prepared(put("delete"), made["delete"].delete),
        "kit: run_now": Prepared(put("run_now", delay=3600), made["run_now"].run_now),
        "kit: requeue of one": Prepared(dead, lambda id: made["requeue"].requeue([id])),
        "kit: get": lambda: read.get(ids[0]),
        "kit: counts": read.counts,
        "kit: queue_stats, 30 minutes": lambda: queue_stats(["bench read"]),
        "kit: pause; resume": lambda: (read.pause(), read.resume()),
    }


def _workers() -> Operations:
    """Return what workers send about themselves."""
    queue = _worker_queue("beat")
    queue.put_many({"n": number} for number in range(2 * BATCH))
    queue.claim(10)
    return {
        "kit: heartbeat": queue.heartbeat,
        "kit: heartbeat of rk_worker, 10 running jobs": lambda: send_heartbeats([queue]),
        "kit: list_workers": lambda: list_workers(["bench beat"]),
        "kit: sweep, 200 jobs": lambda: queue.run_flow(flow.single(calls.sweep(queue.key("")))),
    }


def _worker_queue(name: str) -> WorkerQueue:
    return WorkerQueue(f"bench {name}", worker=this_process(), about="{}")


def batches(server: Server) -> Part:
    """Return calls of a hundred jobs."""
    many, fused, read, fair = map(Queue, ("bench many", "bench fused", "bench read", "bench fair"))
    take, page = map(server.client.register_script, (TAKE_MANY, READ))
    ids = read.put_many({"n": number} for number in range(BATCH))
    server.client.zadd("bench:ready", dict.fromkeys(ids, 1))
    server.client.hset("bench:jobs", mapping=dict.fromkeys(ids, "{}"))
    hand: list[Any] = []
    fair_hand: list[Any] = []

    def listed(_: int) -> range:
        server.client.lpush("bench:many", *range(CALLS * BATCH))
        return range(CALLS)

    def ready(_: int) -> range:
        fused.put_many({"n": number} for number in range(CALLS * BATCH))
        return range(CALLS)

    def exchange(_: int) -> None:
        hand[:] = fused.claim(BATCH, done=hand)

    def ready_groups(_: int) -> range:
        for group in ("large", "small"):
            fair.put_many(({"n": number} for number in range(CALLS * BATCH // 2)), group=group)
        return range(CALLS)

    def exchange_groups(_: int) -> None:
        fair_hand[:] = fair.claim(BATCH, done=fair_hand)

    operations: Operations = {
        "script: LMOVE, LREM of each": Prepared(listed, lambda _: take(["bench:many", "bench:hand"], [BATCH])),
        "kit: claim and ack of others in one call": Prepared(ready, exchange),
        "kit: the same, of two groups": Prepared(ready_groups, exchange_groups),
        "kit: put_many": lambda: many.put_many({"n": number} for number in range(BATCH)),
        "kit: put_many, of a group": lambda: many.put_many(({"n": number} for number in range(BATCH)), group="a"),
        "script: ZRANGE, HMGET": lambda: page(["bench:ready", "bench:jobs"]),
        "kit: peek": lambda: read.peek(BATCH),
        "kit: purge": Prepared(_filled("purge"), lambda queue: queue.purge("ready")),
        "kit: requeue": Prepared(_filled("requeue", dead=True), lambda queue: queue.requeue(limit=BATCH)),
        "kit: reap": Prepared(_filled("reap", claimed=True), _reap),
    }
    return Part(f"queues, per job, {BATCH} in a call", operations, worth=BATCH)


def _filled(name: str, *, claimed: bool = False, dead: bool = False) -> Callable[[int], list[Queue]]:
    made = [Queue(f"bench {name} {number}") for number in range(QUEUES)]

    def fill(_: int) -> list[Queue]:
        for queue in made:
            queue.sign_off()
            for state in ("ready", "dead"):
                queue.purge(state)
            queue.put_many({"n": number} for number in range(BATCH))
            jobs = queue.claim(BATCH) if claimed or dead else []
            for job in jobs if dead else ():
                queue.nack(job, max_attempts=1)
        return made

    return fill


def _reap(queue: Queue) -> object:
    return queue.run_flow(flow.single(calls.reap(queue.key(""), this_process(), [])))
