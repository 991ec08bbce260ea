"""The simulation of slots, with small numbers."""

import re
from itertools import product
from math import sqrt
from pathlib import Path

import pytest

from benchmarks import bench_slots
from benchmarks.support.slots import chance
from benchmarks.support.slots.families import families, fixed
from benchmarks.support.slots.spread import SLOTS, balance, on_nodes, parts, slots_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("nodes", [1, 3, 10, 1000, SLOTS])
def test_nodes_share_all_slots_evenly(nodes):
    shared = parts(nodes)
    assert [slot for part in shared for slot in part] == list(range(SLOTS))
    assert max(map(len, shared)) - min(map(len, shared)) <= 1
    assert sum(on_nodes([1] * SLOTS, nodes)) == SLOTS


def test_chance_agrees_with_all_ways_to_throw_few_balls_into_many_bins():
    throws = [max(throw.count(place) for place in set(throw)) for throw in product(range(8), repeat=5)]
    assert chance.largest(5, [1 / 8] * 8) == sorted(throws)[len(throws) // 2] == 2


def test_chance_of_large_numbers_is_the_normal_distribution():
    names, bins = 1_000_000, 100
    assert chance.deviation(names, 1 / bins) == pytest.approx(sqrt(9900))
    # The median of the largest of 100 normal variables is 2.46 standard deviations above the mean.
    assert chance.largest(names, [1 / bins] * bins) == pytest.approx(10_000 + 2.46 * sqrt(9900), abs=8)


def test_one_bin_gets_all_and_no_name_fills_none():
    assert chance.largest(7, [1.0]) == 7
    assert chance.largest(0, [0.5, 0.5]) == 0


def test_balance_of_names():
    counts = slots_of(f"rk:{{{number % 2}}}" for number in range(10))
    assert balance(counts).used == 2
    assert balance(counts).largest == 5
    assert balance([1, 1, 4]).deviation == pytest.approx(sqrt(2))


def test_families_spread_as_they_say():
    used = {title: balance(slots_of(map(key, range(300)))).used for title, key in families().items()}
    assert used["locks, by name"] == used["sign-ins, by user"] == 16
    assert used["queue-0, queue-1, ... to queue-7"] == 8
    assert used["identities of one throttle"] == 1
    assert min(used[title] for title in ("queues, by name", "throttles, by name", "pages, by name")) > 250
    assert all(row.key.count("{") == 1 for row in fixed())


def test_every_kind_of_key_in_the_reference_is_listed():
    reference = (ROOT / "docs" / "reference" / "keys.md").read_text()
    kinds = re.compile(r"rk:\{([\w-]+)")
    listed = {kinds.match(row.key)[1] for row in fixed()}
    assert listed == set(kinds.findall(reference))


def test_it_prints_each_family_and_each_number_of_nodes(capsys):
    bench_slots.run(100)
    printed = capsys.readouterr().out
    assert all(text in printed for text in [*families(), "1000 nodes", "rk:{queues}:names"])
