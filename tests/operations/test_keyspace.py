"""The keys of a project: the memory of components, and the search."""

import hypothesis
import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import Lock
from redis_kit.operations import component_memory, find_keys, server_reports
from redis_kit.operations.dashboard.keys_page import memory_table
from redis_kit.operations.keyspace import OTHER_PROGRAMS, component_of, measured, share_of
from tests.fixtures.kit import Kit
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


FILL = "for number = 1, ARGV[2] do redis.call('SET', ARGV[1] .. number, number) end"
FORGED = ("x", "0", "0.0.200", "0.0.100.", "0.0.20001.", f"0.{2**64}.200.", "0.0.200.zz", "9.0.200.", "٣.0.200.")
ODD = [b"bytes\xff\x00", b"line\nbreak", b"<script>alert(1)</script>", b"*?[]\\", "键".encode()]


def store(client, names):
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.set(name, "x")
    pipe.execute()


def all_pages(**search):
    """Return the pages of a search, to its end."""
    pages = [find_keys(**search)]
    while pages[-1].cursor:
        pages.append(find_keys(**search, cursor=pages[-1].cursor))
    return pages


@pytest.fixture(scope="module")
def searchable(valkey):
    """REDIS_KIT for all examples of one test."""
    with override_settings(
        REDIS_KIT={"PREFIX": "searched", "CONNECTIONS": {"default": {**valkey.connection, "TEST": True}}}
    ):
        yield


def test_rare_matches_among_many_keys_are_all_reached(own_kit, trips):
    prefix = own_kit.prefix
    client = own_kit.client
    client.eval(FILL, 0, f"{prefix}:{{locks:0}}:user:", 300)
    client.eval(FILL, 0, f"{prefix}:{{locks:0}}:item:", 100_000)
    trips.clear()
    pages = all_pages(text="user:")
    names = [key.name for page in pages for key in page.keys]
    assert sorted(names) == sorted(f"{prefix}:{{locks:0}}:user:{number}" for number in range(1, 301))
    assert len(trips) <= 3 * len(pages)
    assert [page.share for page in pages] == sorted(page.share for page in pages)
    assert pages[-1].share == 1


def test_page_has_at_most_its_limit_and_none_is_left_out(own_kit):
    names = [f"{own_kit.prefix}:{{queues:{number}}}:jobs" for number in range(3000)]
    store(own_kit.client, names)
    pages = all_pages(limit=70)
    assert max(len(page.keys) for page in pages) <= 70
    assert sorted(key.name for page in pages for key in page.keys) == sorted(names)
    assert sum(len(page.keys) for page in pages) / len(pages) > 30


def test_sizes_are_read_without_the_values(own_kit, commands):
    own_kit.client.set(f"{own_kit.prefix}:{{locks:0}}:large", b"x" * 8_000_000, ex=60)
    sent_before = own_kit.client.info("stats")["total_net_output_bytes"]
    with commands(own_kit) as sent:
        (key,) = find_keys("large").keys
    assert own_kit.client.info("stats")["total_net_output_bytes"] - sent_before < 100_000
    assert set(sent) == {"SCAN", "TYPE", "PTTL", "MEMORY"}
    assert key.size >= 8_000_000
    assert 50 < key.expires_in <= 60
    assert (key.type, key.component) == ("string", "locks")


def test_text_may_stand_anywhere_and_colons_match_encoded_names(own_kit):
    lease = Lock("invoice:42").acquire()
    assert {key.component for key in find_keys("invoice:42").keys} == {"locks"}
    assert find_keys("voice:4?", component="locks").keys
    assert not find_keys("invoice:43").keys
    assert not find_keys("invoice", component="lock").keys
    lease.release()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user:7", ["user:7:2027"]),
        ("lock:user:12", ["lock:user%3A12:holder:7"]),
        ("lock:user:2", []),
        ("lock:[a:b]", ["lock:%3A", "lock:a", "lock:b", "lock:a:键b"]),
        ("lock:[ab]", ["lock:a", "lock:b", "lock:a:键b"]),
        ("lock:[^a%u]", ["lock:b", "lock:[x"]),
        ("lock:[x", ["lock:[x"]),
        (r"lock:\[x", ["lock:[x"]),
        ("us?r:[0-9]:", ["user:7:2027"]),
        ("a:*b", ["lock:a:键b"]),
        ("键", ["lock:a:键b"]),
    ],
)
def test_only_names_with_the_text_are_found(own_kit, text, found):
    names = ["user:7:2027", "lock:user%3A12:holder:7", "lock:%3A", "lock:a", "lock:b", "lock:[x", "lock:a:键b"]
    start = f"{own_kit.prefix}:{{x}}:"
    store(own_kit.client, [start + name for name in names])
    assert {key.name.removeprefix(start) for key in find_keys(text).keys} == set(found)


def test_whole_key_finds_itself(own_kit):
    names = [f"{own_kit.prefix}:{{queues:{name}}}:features" for name in ("bulk", "mail")]
    store(own_kit.client, names)
    assert [key.name for key in find_keys(names[0]).keys] == names[:1]
    assert {key.name for key in find_keys(f"{own_kit.prefix}:{{queues").keys} == set(names)


def test_keys_of_other_programs_are_not_shown(own_kit):
    own_kit.client.mset({"secret": "x", f"{own_kit.prefix}2:{{locks:0}}:secret": "x", f"x{own_kit.prefix}:secret": "x"})
    assert all_pages(text="secret")[-1].keys == all_pages()[-1].keys == []


def test_odd_names_are_text(own_kit):
    store(own_kit.client, [own_kit.prefix.encode() + b":{locks:0}:" + name for name in ODD])
    keys = [key for page in all_pages() for key in page.keys]
    assert len(keys) == len(ODD)
    assert all(isinstance(key.name, str) for key in keys)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "0",
        "0.0.200",
        "0.0.100.",
        "0.0.20001.",
        "0.99999999999999999999.200.",
        "0.0.200.zz",
        "9.0.200.",
        "٣.0.200.",
    ],
)
def test_forged_cursor_is_refused(kit, cursor):
    with pytest.raises(InvalidValue, match="cursor"):
        find_keys(cursor=cursor)


@hypothesis.settings(max_examples=30)
@given(st.text(max_size=60))
def test_any_text_is_a_search_or_refused(searchable, text):
    try:
        find_keys(text)
    except InvalidValue as error:
        assert len(text.encode()) > 128 or "\0" in text, error  # noqa: PT017


@pytest.mark.parametrize("wrong", [{"text": "x" * 129}, {"component": "Locks*"}, {"limit": 0}, {"limit": 1001}])
def test_wrong_arguments_are_named(kit, wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        find_keys(**wrong)


def test_nodes_of_a_cluster_are_searched_one_after_the_other(cluster, settings):
    kit = Kit(cluster, settings)
    names = [f"{kit.prefix}:{{locks:{number}}}:holder" for number in range(300)]
    for name in names:
        kit.client.set(name, "x")
    pages = all_pages(text="holder", limit=100)
    assert sorted(key.name for page in pages for key in page.keys) == sorted(names)
    assert pages[-1].share == 1
    kit.close()


def test_share_is_that_of_all_cursors():
    assert share_of(0) == 0
    assert share_of(1) == 0.5
    assert share_of(0b11) == 0.75
