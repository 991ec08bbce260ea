"""``rk_bench``, run as from a shell."""

import json

import pytest

from redis_kit.core.component import components
from redis_kit.locks import Lock
from redis_kit.operations.commands import rk_bench

QUICK = ("--seconds", "0.01")


def test_operations_of_each_component_are_measured_and_no_key_is_left(any_kit, shell):
    Lock("mine").acquire(blocking=False)
    before = sorted(any_kit.keys())
    code, output, errors = shell("rk_bench", *QUICK, "--json")
    data = json.loads(output)
    assert (code, errors) == (0, "")
    assert sorted(any_kit.keys()) == before
    rows = data["operations"]
    with_some = {each.label for each in components() if each.benchmarks}
    assert {row["component"] for row in rows} == {"", *with_some} > {"locks", "throttling", "queues"}
    for row in rows:
        assert row["calls"] >= 1, row
        assert 0 < row["p50"] <= row["p99"]
        assert row["per_second"] > 0


def test_table_has_a_line_for_each_operation(kit, shell):
    code, output, _ = shell("rk_bench", *QUICK)
    about, columns, first, *others = output.splitlines()
    assert code == 0
    assert about.startswith("default: valkey 9.")
    assert columns.split() == ["COMPONENT", "OPERATION", "A", "SECOND", "MEDIAN", "P99"]
    assert first.split()[:2] == ["round", "trip"]
    assert len(others) >= 5


def test_keys_are_removed_if_it_is_interrupted(kit, shell, monkeypatch):
    def interrupted(component, operation, seconds):
        operation.call()
        if component == "queues":
            raise KeyboardInterrupt

    Lock("mine").acquire(blocking=False)
    before = sorted(kit.keys())
    monkeypatch.setattr(rk_bench, "_measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell("rk_bench", *QUICK)
    assert sorted(kit.keys()) == before


def test_outage_and_wrong_arguments_have_their_exit_codes(kit, shell):
    assert shell("rk_bench", "--seconds", "0")[0] == 2
    assert shell("rk_bench", "--using", "nope")[0] == 2
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert shell("rk_bench", *QUICK)[0] == 69
