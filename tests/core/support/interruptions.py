"""Threads that are interrupted at any point of their calls, in a process of its own: it prints what came of it.

``python -m tests.core.support.interruptions redis://... 60`` goes on for that many seconds. The exit code is 1 if a
reply was taken for another one's, or a connection got lost.
"""

import contextlib
import ctypes
import json
import sys
import threading
import time
from collections import Counter

THREADS, CONNECTIONS = 6, 3


class Interrupted(BaseException):
    """Raised in a thread from outside."""


def run(seconds):
    """Return how often what happened."""
    from redis_kit.core import connections

    client, over, seen = connections.client(), threading.Event(), Counter()

    def call(number):
        what = f"{threading.get_ident()} {number}".encode()
        reply = client.call("ECHO", what) if number % 3 else client.batch([("ECHO", what)])[0]
        seen["right" if reply == what else "wrong"] += 1

    def work():
        number = 0
        while not over.is_set():
            number += 1
            try:
                call(number)
            except Interrupted:
                seen["interrupted"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    def shielded():
        with contextlib.suppress(Interrupted):  # it came between two calls: the next thread goes on
            work()

    until, threads = time.monotonic() + seconds, []
    while time.monotonic() < until:
        threads = [thread for thread in threads if thread.is_alive()]
        while len(threads) < THREADS:
            threads.append(threading.Thread(target=shielded, daemon=True))
            threads[-1].start()
        for thread in threads:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupted))
            time.sleep(0.001)
    over.set()
    for thread in threads:
        thread.join(10)
    pool = client._pool
    seen["lost"] = len(pool._made) - len(pool._idle)
    seen["waiting"] = len(pool._waiting)
    return seen


def main(url, seconds):
    """Run it, print the figures, and return the exit code."""
    from django.conf import settings

    settings.configure(
        SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is",
        REDIS_KIT={
            "CONNECTIONS": {"default": {"URL": url}},
            "MAX_CONNECTIONS": CONNECTIONS,
            "CONNECT_TIMEOUT": 2,
            "READ_TIMEOUT": 2,
        },
    )
    sys.unraisablehook = lambda _: None  # an interruption may come in a destructor, too
    seen = run(seconds)
    print(json.dumps(seen))
    return int(bool(set(seen) - {"right", "interrupted", "lost", "waiting"} or seen["lost"] or seen["waiting"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
