"""What each operation costs the server, whose one core all processes share, beside peers that do the same job."""

from collections.abc import Callable
from datetime import date, timedelta
from itertools import count
from typing import Any, NamedTuple

from benchmarks.support import limiters
from benchmarks.support.limiters import Check
from benchmarks.support.server_cost import Cost, Meter, Operations
from benchmarks.support.workers.goals import Goal
from benchmarks.support.workers.server import Server, on_tcp
from redis_kit.queues import Queue

BATCH = 100
IDENTITIES = 1000  # in turn; each makes few calls within a minute
RATE = "10000/m"
PUT = "redis.call('ZADD', KEYS[1], 1, ARGV[1]) return redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])"
TAKE = "return redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')"
END = "return redis.call('LREM', KEYS[1], 1, ARGV[1])"
TAKE_MANY = """
for _ = 1, ARGV[1] do redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT') end
local taken = redis.call('LRANGE', KEYS[2], 0, -1)
for _, job in ipairs(taken) do redis.call('LREM', KEYS[2], 1, job) end
return taken
"""


class Part(NamedTuple):
    """Operations that are compared, and the goals for them: name, peer, and the most as a multiple of the peer's."""

    title: str
    operations: Operations
    goals: tuple[tuple[str, str, float], ...] = ()
    worth: int = 1


def run() -> None:
    """Print the cost of each operation, then the goals."""
    with on_tcp(one_core=True) as server:
        meter, goals = Meter(server), []
        print("Of each operation, without that of bare scripts for its round trips:")
        for part in (locks, throttles, queues, batches, page_views, sign_ins):
            goals += measured(meter, part(server))
            server.flush()
        for goal in goals:
            print(goal)
        print()


def measured(meter: Meter, part: Part) -> list[Goal]:
    """Print the costs of a part, and return its goals."""
    costs = meter.costs(part.operations, worth=part.worth)
    print(f"\n{part.title:52}{'user us':>9}{'system us':>11}{'sent':>7}{'run':>7}")
    for name, cost in costs.items():
        print(f"{name:52}{cost.user:9.1f}{cost.system:11.1f}{cost.sent:7.1f}{cost.run:7.1f}")
    return [_goal(costs, *goal) for goal in part.goals]


def _goal(costs: dict[str, Cost], name: str, peer: str, most: float) -> Goal:
    return Goal(f"{name}, to {peer}", costs[name].user / costs[peer].user, "<=", most)


def locks(server: Server) -> Part:
    """Return pairs of acquire and release, and calls of a held lock."""
    from redis_kit.locks import FairLock, Lock, MultiLock, ReadWriteLock, Semaphore

    theirs, both = server.client.lock("bench:redis-py", timeout=30), ReadWriteLock("bench", timeout=30)
    held, peer = Lock("held", timeout=30), "redis-py: Lock"
    lease = held.acquire()
    assert lease
    refused = Lock("held", timeout=30, blocking=False)
    cycles = {
        peer: theirs,
        "kit: Lock": Lock("bench", timeout=30),
        "kit: FairLock": FairLock("bench", timeout=30),
        "kit: Semaphore": Semaphore("bench", 5, timeout=30),
        "kit: Semaphore, fair": Semaphore("bench fair", 5, timeout=30, fair=True),
        "kit: ReadWriteLock, read": both.read,
        "kit: ReadWriteLock, write": both.write,
        "kit: MultiLock of three": MultiLock("a", "b", "c", timeout=30),
    }
    operations = {f"{name}: acquire, release": _cycle(lock) for name, lock in cycles.items()}
    operations |= {
        "kit: Lock: extend": lambda: lease.extend(30, replace_ttl=True),
        "kit: Lock: acquire, refused": lambda: refused.acquire(blocking=False),
        "kit: Lock: locked": held.locked,
    }
    most = {"Lock": 2.0, "FairLock": 4.0, "Semaphore": 3.0, "ReadWriteLock, read": 3.0}
    goals = [(f"kit: {kind}: acquire, release", f"{peer}: acquire, release", times) for kind, times in most.items()]
    return Part("locks", operations, tuple(goals))


def _cycle(lock: Any) -> Callable[[], None]:
    def cycle() -> None:
        lock.acquire()
        lock.release()

    return cycle


def throttles(server: Server) -> Part:
    """Return admitted hits of each strategy."""
    from redis_kit.throttling import Throttle, hit_all

    kinds = ("gcra", "token_bucket", "fixed_window", "sliding_counter", "sliding_log")
    made = {kind: Throttle(f"bench {kind}", RATE, strategy=kind) for kind in kinds}
    three = Throttle("bench three", f"{RATE}; 300000/h; 2000000/d")
    apart = [Throttle(f"bench {number}", RATE) for number in range(3)]
    checks: dict[str, Check] = {f"kit: {kind}": throttle.hit for kind, throttle in made.items()}
    checks |= {
        "kit: gcra, three rates": three.hit,
        "kit: gcra, three throttles": lambda who: hit_all([(throttle, who) for throttle in apart]),
        "kit: gcra, peek": made["gcra"].peek,
    }
    peers = limiters.throttled_py(server.url) | limiters.limits(server.url)
    goals = (
        ("kit: gcra", "throttled-py: gcra", 1.25),
        ("kit: token_bucket", "throttled-py: token_bucket", 1.25),
        ("kit: sliding_log", "limits: moving window", 1.5),
        ("kit: sliding_counter", "limits: sliding window counter", 1.5),
        ("kit: gcra, three rates", "kit: gcra", 1.5),
    )
    return Part("throttles", {name: _in_turn(name, check) for name, check in (checks | peers).items()}, goals)


def _in_turn(name: str, check: Check) -> Callable[[], object]:
    numbers = count()
    return lambda: check(f"{name}:{next(numbers) % IDENTITIES}")


def queues(server: Server) -> Part:
    """Return the calls in the life of one job."""
    queue, ended, numbers = Queue("bench"), Queue("bench ended"), count()
    client = server.client
    put, take, end = map(client.register_script, (PUT, TAKE, END))
    ended.put_many({"n": number} for number in range(100_000))
    client.lpush("bench:waiting", *range(100_000))
    operations: Operations = {
        "script: ZADD, HSET": lambda: put(["bench:zset", "bench:hash"], [next(numbers), '{"n":1}']),
        "kit: put": lambda: queue.put({"n": next(numbers)}),
        "kit: put, delayed": lambda: queue.put({"n": next(numbers)}, delay=3600),
        "kit: put, unique": lambda: queue.put({"n": next(numbers)}, unique=f"key{next(numbers) % 100}"),
        "scripts: LMOVE; LREM": lambda: end(["bench:hand"], [take(["bench:waiting", "bench:hand"])]),
        "kit: claim; ack": lambda: ended.ack(*ended.claim()),
        "kit: heartbeat": ended.heartbeat,
        "kit: counts": queue.counts,
    }
    goals = (
        ("kit: put", "script: ZADD, HSET", 2.0),
        ("kit: claim; ack", "scripts: LMOVE; LREM", 3.0),
    )
    return Part("queues", operations, goals)


def batches(server: Server) -> Part:
    """Return calls of a hundred jobs."""
    many, fused = Queue("bench many"), Queue("bench fused")
    take = server.client.register_script(TAKE_MANY)
    fused.put_many({"n": number} for number in range(300_000))
    server.client.lpush("bench:many", *range(300_000))
    hand: list[Any] = []

    def exchange() -> None:
        hand[:] = fused.claim(BATCH, done=hand)

    operations: Operations = {
        "script: LMOVE, LREM of each": lambda: take(["bench:many", "bench:hand"], [BATCH]),
        "kit: claim and ack of others in one call": exchange,
        "kit: put_many": lambda: many.put_many({"n": number} for number in range(BATCH)),
    }
    return Part(f"queues, per job, {BATCH} in a call", operations, worth=BATCH)


def page_views(server: Server) -> Part:
    """Return a view that is counted by itself, and reads of a page."""
    from redis_kit.pageviews import PageViews

    page, numbers, client = PageViews("bench"), count(), server.client
    today = date.today()
    operations: Operations = {
        "redis-py: PFADD": lambda: client.pfadd("bench:visitors", next(numbers)),
        "kit: add": lambda: page.add(f"visitor {next(numbers)}"),
        "kit: visitors of 7 days": lambda: page.visitors(today - timedelta(days=6), today),
        "kit: views of 7 days": lambda: page.views(today - timedelta(days=6), today),
    }
    return Part("page views", operations)


def sign_ins(server: Server) -> Part:
    """Return a sign-in on the day after the last one, and reads of one user's days."""
    from django.contrib.auth.models import User

    from redis_kit.signins.history import History

    histories, days, day = [History(_stored(User(pk=pk))) for pk in range(IDENTITIES)], count(), date(2026, 6, 1)
    history = histories[0]

    def sign_in() -> None:
        number = next(days)
        histories[number % IDENTITIES].sign_in(date(2026, 1, 1) + timedelta(days=number // IDENTITIES))

    bit = server.client.register_script("return redis.call('SETBIT', KEYS[1], ARGV[1], 1)")
    operations: Operations = {
        "script: SETBIT": lambda: bit(["bench:days"], [next(days) % 366]),
        "kit: sign_in": sign_in,
        "kit: streak": lambda: history.streak(day),
        "kit: calendar of a month": lambda: history.calendar(2026, 6, day),
        "kit: count of a year": lambda: history.count(date(2026, 1, 1), date(2026, 12, 31)),
    }
    return Part("sign-ins", operations, (("kit: sign_in", "script: SETBIT", 3.0),))


def _stored(user: Any) -> Any:
    user._state.adding = False
    return user
