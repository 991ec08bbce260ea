"""The component of a key, and how much of the keys SCAN has passed."""

import pytest

from redis_kit.operations import component_memory, server_reports
from redis_kit.operations.dashboard.keys_page import memory_table
from redis_kit.operations.keys.sample import OTHER_PROGRAMS, component_of, measured, share_of
from tests.operations.conftest import fill


def test_component_is_that_of_the_key(kit):
    prefix = kit.prefix
    assert component_of(f"{prefix}:{{locks:a}}:holder") == "locks"
    assert component_of(f"{prefix}:{{queues-schedules}}:due") == "queues"
    assert component_of(f"{prefix}:{{queues}}:names") == "queues"
    assert component_of(f"{prefix}:locks") == component_of("other:{locks:a}") == ""


def test_share_grows_with_the_cursor_of_scan(own_kit):
    own_kit.client.mset({f"{own_kit.prefix}:{number}": "" for number in range(3000)})
    shares, cursor = [], None
    while cursor != 0:
        cursor, _keys = own_kit.client.scan(cursor or 0, count=100)
        shares.append(share_of(cursor))
    assert shares[:-1] == sorted(shares[:-1])
    assert len(shares) > 20
    assert 0.4 < shares[len(shares) // 2] < 0.6


def test_component_of_few_keys_is_measured_beside_one_of_many(own_kit):
    keys = {f"{own_kit.prefix}:{{pageviews:{number}}}:views": "x" * 1000 for number in range(900)}
    own_kit.client.mset(keys | {f"{own_kit.prefix}:{{locks:{number}}}:holder": "x" * 100 for number in range(3)})
    sizes = {row.component: (row.keys, row.size) for row in component_memory()}
    assert sizes["locks"][0] == 3
    assert 300 < sizes["locks"][1] < 900
    assert sizes["pageviews"][1] > 900_000


def test_keys_of_other_programs_are_a_row_of_their_own(own_kit, shell):
    fill(own_kit)
    own_kit.client.set(f"{own_kit.prefix}:{{project}}", "tests")
    rows = {row.component: row for row in component_memory()}
    assert rows[OTHER_PROGRAMS].keys == rows[""].keys == 1
    assert 100_000 <= rows[OTHER_PROGRAMS].size < 200_000
    assert {row.component: row.keys for row in server_reports()[0].memory} == {
        name: row.keys for name, row in rows.items()
    }
    lines = shell("rk_keys")[1]
    assert "other programs" in lines
    assert "other keys with this prefix" in lines


def test_other_programs_are_counted_if_an_acl_hides_their_memory(own_kit):
    fill(own_kit)
    rules = f"on >secret ~{own_kit.prefix}:* +@all"
    own_kit.client.execute_command("ACL", "SETUSER", "site", *rules.split())
    own_kit.connect({**own_kit.server.connection, "USERNAME": "site", "PASSWORD": "secret"})
    rows = {row.component: row for row in component_memory()}
    assert (rows[OTHER_PROGRAMS].keys, rows[OTHER_PROGRAMS].size) == (1, 0)
    assert rows["locks"].size > 0
    (report,) = server_reports()
    assert "memory|usage" not in report.refused
    assert str(memory_table(report.memory, linked=False).rows[-1][2]) == "?"


def test_large_keys_among_many_small_ones_are_measured(own_kit):
    prefix = own_kit.prefix
    own_kit.client.mset({f"{prefix}:{{search:{number}}}:state": "x" for number in range(4000)})
    own_kit.client.mset({f"{prefix}:{{search:a}}:docs:{number}": "x" * 1_000_000 for number in range(2)})
    (row,) = component_memory()
    assert (row.keys, row.share) == (4002, 1)
    assert 2_000_000 < row.size < 3_500_000


def test_large_keys_of_a_large_database_are_not_multiplied(own_kit):
    prefix = own_kit.prefix
    own_kit.client.mset({f"{prefix}:{{locks:{number}}}:holder": "x" for number in range(60_000)})
    own_kit.client.mset({f"{prefix}:{{search:{number}}}:docs": "x" * 1_000_000 for number in range(5)})
    for rows in (component_memory(), server_reports()[0].memory):
        sizes = {row.component: row.size for row in rows}
        true = 60_000 * own_kit.client.memory_usage(f"{prefix}:{{locks:1}}:holder")
        assert 0.9 * true < sizes["locks"] < 1.1 * true
        assert sizes.get("search", 0) < 7_000_000
        assert sum(sizes.values()) <= own_kit.client.info("memory")["used_memory"]


def test_estimate_is_at_most_the_memory_of_the_server(kit):
    flow = measured((b"1", [f"{kit.prefix}:{{locks:x}}:a".encode()] * 100), 1000, 2_000_000)
    assert len(next(flow).calls) == 100
    with pytest.raises(StopIteration) as stop:
        flow.send([50_000] * 100)
    ((row,), failure, moved) = stop.value.value
    assert (row.keys, row.size, row.share, failure, moved) == (1000, 2_000_000, 0.1, None, 0)
