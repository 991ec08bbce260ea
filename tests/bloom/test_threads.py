"""Eight threads on one filter, at each moment at which its generations change: no acknowledged add is lost."""

import sys
import threading
from datetime import timedelta
from itertools import chain

import pytest

from redis_kit.bloom import BloomFilter
from redis_kit.bloom.filter import digest
from redis_kit.core import connections

THREADS, ROUNDS = 8, 10


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads change places at almost each line."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(work):
    """Call a function in each of eight threads, with their numbers."""
    barrier, errors = threading.Barrier(THREADS), []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def side_by_side(flows):
    """Carry out flows that all get the reply to their first step before one goes on."""
    client = connections.client("default")
    replies = [flow.send(None).run(client) for flow in flows]
    for flow, reply in zip(flows, replies, strict=True):
        try:
            while True:
                reply = flow.send(reply).run(client)
        except StopIteration:
            pass


def age(kit, seen, seconds):
    """Let all generations be older."""
    for field, value in kit.client.hgetall(seen.key("state")).items():
        if field.startswith("since:"):
            kit.client.hset(seen.key("state"), field, int(value) - seconds * 1000)


def test_first_adds(kit):
    for number in range(ROUNDS):
        seen = BloomFilter(f"first {number}", 1000)
        together(seen.add)
        assert all(seen.contains_many(range(THREADS)))


def test_adds_to_a_full_filter(kit):
    for number in range(ROUNDS):
        seen = BloomFilter(f"full {number}", 100)
        seen.add_many(range(100))
        together(lambda thread, seen=seen: seen.add_many(range(1000 + 3 * thread, 1003 + 3 * thread)))
        assert all(seen.contains_many([*range(100), *range(1000, 1024)]))
        assert seen.info().layers == 2


def test_adds_after_a_slice_of_a_window(kit):
    for number in range(ROUNDS):
        seen = BloomFilter(f"window {number}", 1000, window=timedelta(seconds=100))
        seen.add_many(range(50))
        age(kit, seen, 26)
        together(lambda thread, seen=seen: seen.add(1000 + thread))
        assert len(seen._generations.shape.active) == 2
        assert all(seen.contains_many([*range(50), *range(1000, 1008)]))


def test_adds_beside_rebuilds(kit):
    """The source has each value before it is added, as a table has; so it is found from its add on."""
    seen, lost = BloomFilter("beside", 10_000), []
    source, added = [[[] for _ in range(THREADS)] for _ in range(2)]

    def work(thread):
        if thread:
            for value in range(thread * 1000, thread * 1000 + 60):
                source[thread].append(value)
                seen.add(value)
                added[thread].append(value)
            return
        for _ in range(ROUNDS):
            seen.rebuild(value for values in source for value in values)
            values = [*chain.from_iterable(added)]
            lost.extend(value for value, found in zip(values, seen.contains_many(values), strict=True) if not found)

    together(work)
    assert lost == []
    assert all(seen.contains_many(chain.from_iterable(added)))


@pytest.mark.parametrize("moment", ["first add", "full", "old slice"])
def test_flows_that_learn_of_a_change_at_once(kit, moment):
    seen = BloomFilter(moment, 100, window=timedelta(seconds=100) if moment == "old slice" else None)
    if moment != "first add":
        seen.add_many(range(25 if seen.parameters.window else 100))
        age(kit, seen, 26)
    side_by_side([seen._add([digest(1000 + number)]) for number in range(THREADS)])
    assert all(seen.contains_many(range(1000, 1000 + THREADS)))
    shape = seen._generations.shape
    assert (len(shape.active), seen.info().layers) == ((2, 1) if moment == "old slice" else (1, 1 + (moment == "full")))
