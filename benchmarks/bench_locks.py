"""An uncontended lock beside the two commands that any lock needs, and beside redis-py's lock."""

from secrets import token_hex

import redis

from benchmarks.support.measurement import compare, site
from redis_kit.locks import Lock, Semaphore

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


def run() -> None:
    """Print the rates of pairs of acquire and release."""
    with site() as client:
        digest = client.script_load(RELEASE)
        redis_py_lock = client.lock("bench:redis-py", timeout=30)
        lock, semaphore = Lock("bench", timeout=30), Semaphore("bench", 5, timeout=30)
        compare(
            {
                "bare pair: SET NX PX, EVALSHA": lambda: bare(client, digest),
                "redis-py: Lock": lambda: pair(redis_py_lock),
                "kit: Lock": lambda: pair(lock),
                "kit: Lock, a new object each time": lambda: pair(Lock("bench", timeout=30)),
                "kit: Semaphore": lambda: pair(semaphore),
            },
            base="bare pair: SET NX PX, EVALSHA",
        )


def bare(client: redis.Redis, digest: str) -> None:
    """Acquire and release with the fewest safe commands: no fence, no index, no wake-up."""
    token = token_hex(16)
    client.set("bench:bare", token, nx=True, px=30_000)
    client.evalsha(digest, 1, "bench:bare", token)


def pair(lock: object) -> None:
    """Acquire and release."""
    lock.acquire()  # type: ignore[attr-defined]
    lock.release()  # type: ignore[attr-defined]
