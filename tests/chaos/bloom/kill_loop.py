"""No value of a Bloom filter is forgotten while rebuilds are killed and the server restarts.

``python -m tests.chaos.bloom.kill_loop 1000000 7`` adds a million values by three processes, with seed 7. A fourth one
rebuilds the filter from the values that were acknowledged, and is killed at random moments. The server writes each
change to its disk before it answers, and is killed too. The exit code is 1 if a value is missing.
"""

import argparse
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from redis_kit.bloom import BloomFilter
from redis_kit.bloom import filter as module
from redis_kit.core.errors import RebuildLost, RebuildRunning, RedisKitError
from redis_kit.core.indexes import generations
from tests.fixtures.process import Server

ADDERS = 3
LEASE_MS = 300  # so that the rebuild after a kill need not wait for a minute
PATIENT = {"CONNECT_TIMEOUT": 5.0, "READ_TIMEOUT": 5.0}  # on a machine that does other things, too
ADDER_PAUSE = 0.03  # seconds after a batch; rebuilds need some of the server's time, too
LAST_REBUILD = 30.0  # seconds for a rebuild without kills, if none was complete before
SPACE = 10**9  # values of an adder: its number times this, and on


class Progress:
    """The numbers of values that were begun and acknowledged by each adder, and of rebuilds; all processes share them.

    A rebuild reads those that were begun, as a table has a row before its value is added.
    """

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, 16 * ADDERS + 8)).cast("Q")  # each is written and read at once

    def begin(self, adder, count):
        self._counts[ADDERS + adder] = count

    def set(self, adder, count):
        self._counts[adder] = count

    def get(self, adder):
        return self._counts[adder]

    def begun(self, adder):
        return self._counts[ADDERS + adder]

    def note_rebuild(self):
        self._counts[2 * ADDERS] += 1

    def rebuilds(self):
        return self._counts[2 * ADDERS]

    def total(self):
        return sum(map(self.get, range(ADDERS)))

    def values(self):
        """Yield the values of the source; those of an adder that has gone on meanwhile, too."""
        for adder in range(ADDERS):
            number = 0
            while number < self.begun(adder):
                yield adder * SPACE + number
                number += 1


def fork(work):
    """Run a function in a child process, and return its id."""
    if pid := os.fork():
        return pid
    try:
        work()
    finally:
        os._exit(0)


def add_all(seen, progress, adder, wanted, chance):
    """Add values in batches; each is repeated until it is acknowledged."""
    count = 0
    while count < wanted:
        size = min(wanted - count, chance.choice((1, 10, 500, 1000, 1000, 1000)))
        first = adder * SPACE + count
        progress.begin(adder, count + size)
        while True:
            with suppress(RedisKitError):
                seen.add_many(range(first, first + size))
                break
            time.sleep(0.01)
        count += size
        progress.set(adder, count)
        time.sleep(ADDER_PAUSE)


def rebuild_again_and_again(seen, progress):
    """Rebuild until killed."""
    while True:
        with suppress(RebuildRunning, RebuildLost, RedisKitError):
            seen.rebuild(progress.values())
            progress.note_rebuild()
        time.sleep(0.02)


def missing(seen, progress, chance, samples):
    """Return some of the acknowledged values that are not found."""
    values = []
    for _ in range(samples):
        adder = chance.randrange(ADDERS)
        if count := progress.get(adder):
            values.append(adder * SPACE + chance.randrange(count))
    with suppress(RedisKitError):
        return [value for value, found in zip(values, seen.contains_many(values), strict=True) if not found]
    return []


def run(server, wanted, seed, *, pause=5.0):
    """Return the kills of rebuilds, the restarts, the rebuilds that were complete, and the values that were missing."""
    generations.LEASE_MS = module.LEASE_MS = LEASE_MS
    chance, progress = random.Random(seed), Progress()
    seen = BloomFilter("killed", capacity=max(1000, wanted // 2))  # so that it gets a second layer
    adders = [
        fork(lambda n=number: add_all(seen, progress, n, wanted // ADDERS, random.Random(seed + n)))
        for number in range(ADDERS)
    ]
    kills, restarts, lost = 0, 0, []
    rebuilder = fork(lambda: rebuild_again_and_again(seen, progress))
    try:
        while progress.total() < wanted // ADDERS * ADDERS:
            time.sleep(chance.uniform(0, pause))
            if chance.random() < 0.15:
                server.restart()
                restarts += 1
            elif chance.random() < 0.25:
                os.kill(rebuilder, signal.SIGKILL)
                os.waitpid(rebuilder, 0)
                rebuilder = fork(lambda: rebuild_again_and_again(seen, progress))
                kills += 1
            lost += missing(seen, progress, chance, 1000)
        deadline = time.monotonic() + LAST_REBUILD
        while not progress.rebuilds() and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        for pid in (rebuilder, *adders):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    values = [adder * SPACE + number for adder in range(ADDERS) for number in range(progress.get(adder))]
    lost += [value for value, found in zip(values, seen.contains_many(values), strict=True) if not found]
    return kills, restarts, progress.rebuilds(), lost


def durable(folder):
    """Start a server that writes each change to its disk before it answers."""
    return Server(tcp=True, persistence=True, data_dir=folder, extra_args=("--appendfsync", "always"))


def main(arguments):
    """Run it, and return the exit code."""
    from django.test import override_settings

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("values", type=int)
    parser.add_argument("seed", type=int)
    options, folder, began = parser.parse_args(arguments), Path(tempfile.mkdtemp()), time.monotonic()
    server = durable(folder)
    try:
        with override_settings(REDIS_KIT={"CONNECTIONS": {"default": server.connection}, **PATIENT}):
            kills, restarts, rebuilds, lost = run(server, options.values, options.seed)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{options.values:,} values in {time.monotonic() - began:.0f} s; {kills} rebuilds killed, {restarts} restarts"
    )
    print(f"{rebuilds} rebuilds were complete; missing: {len(lost)} {lost[:10]}")
    return 1 if lost else 0


if __name__ == "__main__":
    import django
    from django.conf import settings

    settings.configure(
        INSTALLED_APPS=["redis_kit"], USE_TZ=True, SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is"
    )
    django.setup()
    sys.exit(main(sys.argv[1:]))
