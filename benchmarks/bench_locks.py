"""An uncontended lock beside the bare pair of commands that any lock needs, and beside redis-py's own."""

from secrets import token_hex

import redis

from benchmarks.measure import compare, site
from redis_kit.locks import Lock, Semaphore

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


def run() -> None:
    """Print the rates of pairs of acquire and release."""
    with site() as client:
        digest = client.script_load(RELEASE)
        theirs = client.lock("bench:redis-py", timeout=30)
        lock, semaphore = Lock("bench", timeout=30), Semaphore("bench", 5, timeout=30)
        compare(
            {
                "bare pair: SET NX PX, EVALSHA": lambda: bare(client, digest),
                "redis-py: Lock": lambda: pair(theirs),
                "kit: Lock": lambda: pair(lock),
                "kit: Lock, a new object each time": lambda: pair(Lock("bench", timeout=30)),
                "kit: Semaphore": lambda: pair(semaphore),
            },
            base="bare pair: SET NX PX, EVALSHA",
        )


def bare(client: redis.Redis, digest: str) -> None:
    """Take and release with the least that is safe: no fence, no index, nobody woken."""
    token = token_hex(16)
    client.set("bench:bare", token, nx=True, px=30_000)
    client.evalsha(digest, 1, "bench:bare", token)


def pair(lock: object) -> None:
    """Take and release."""
    lock.acquire()  # type: ignore[attr-defined]
    lock.release()  # type: ignore[attr-defined]
