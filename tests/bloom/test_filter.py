"""A filter against a plain set, its generations and its errors."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from inspect import unwrap
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from redis_kit.bloom import BloomFilter
from redis_kit.bloom.filter import digest
from redis_kit.core import connections
from redis_kit.core.client.single import Client
from redis_kit.core.errors import (
    InvalidName,
    InvalidValue,
    KeyConflict,
    ParameterMismatch,
    RebuildLost,
    RebuildRunning,
    RedisUnavailable,
)
from redis_kit.core.indexes.generations import Generation
from tests.bloom.test_threads import side_by_side

STEPS = 12  # of a rebuild of 3,000 values
VALUES = st.one_of(st.integers(0, 50), st.text("ab", max_size=3), st.binary(max_size=2), st.uuids())


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 4,096 bits: a filter of 2,000 values has five."""
    monkeypatch.setattr("redis_kit.bloom.parameters.PART", 4096)
    monkeypatch.setattr("redis_kit.core.indexes.generations.AT_ONCE", 4096)
    from redis_kit.bloom import filter as module

    for name in ("ADD", "CONTAINS"):
        script = getattr(module, name)
        monkeypatch.setattr(module, name, type(script)(name, script.source.replace("268435456", "4096")))


def test_add_says_whether_a_value_was_new(any_kit, twin):
    seen = BloomFilter("seen", 1000)
    assert twin(seen.contains, "a") is False
    assert twin(seen.add, "a") is True
    assert twin(seen.add, "a") is False
    assert twin(seen.add_many, ["a", "b", "b"]) == [False, True, False]
    assert twin(seen.contains_many, ["a", "b", "c"]) == [True, True, False]
    info = twin(seen.info)
    assert (info.items, info.layers, info.memory < 1300, info.complete) == (2, 1, True, None)
    assert twin(seen.rebuild, ["c"]) == 1
    assert twin(seen.contains_many, ["a", "c"]) == [False, True]
    assert twin(seen.clear) is True
    assert twin(seen.clear) is False
    assert twin(seen.info) is None
    assert "a" not in seen


def test_types_of_values_differ(kit):
    seen = BloomFilter("types", 1000)
    values = [1, "1", b"1", UUID(int=1), "", b"", 0, -1, 2**70, 10**5000]
    assert all(seen.add(value) for value in values)
    assert all(value in seen for value in values)


@pytest.mark.parametrize("value", [None, 1.0, True, ["a"], object()])
def test_other_values_are_refused(kit, value):
    with pytest.raises(InvalidValue, match="takes str, bytes, int and UUID"):
        BloomFilter("seen").add(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity": 0},
        {"capacity": -1},
        {"capacity": 10**12},
        {"capacity": 1.5},
        {"capacity": True},
        {"error": 0},
        {"error": 1},
        {"error": 2},
        {"error": float("nan")},
        {"error": "0.1"},
        {"window": timedelta(0)},
        {"window": timedelta(-1)},
    ],
)
def test_parameters_out_of_range_are_refused(kit, wrong):
    with pytest.raises(InvalidValue):
        BloomFilter("seen", **wrong)


def test_wrong_calls_are_refused(kit):
    with pytest.raises(InvalidName):
        BloomFilter("")
    with pytest.raises(TypeError, match="capacity"):
        BloomFilter("seen", capacty=1)
    with pytest.raises(InvalidValue, match="Give a list of values"):
        BloomFilter("seen").add_many("abc")


def test_other_parameters_for_a_name_are_an_error_that_names_both(kit):
    BloomFilter("seen", 1000, 0.01).add(1)
    other = BloomFilter("seen", 2000, 0.001)
    for call in (other.add, other.contains):
        with pytest.raises(ParameterMismatch, match=r"capacity 1,000, error 0.01.*capacity 2,000, error 0.001"):
            call(1)
    with pytest.raises(ParameterMismatch):
        other.rebuild([1])
    assert 1 in BloomFilter("seen", 1000, 0.01)


def test_a_thousand_values_take_one_round_trip(kit, trips):
    seen = BloomFilter("seen", 10_000)
    seen.add(-1)
    for call in (seen.add_many, seen.contains_many):
        trips.clear()
        call(range(1000))
        assert len(trips) == 1
        trips.clear()
        call(range(2500))
        assert len(trips) == 3


@hypothesis(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["add", "many", "rebuild", "clear"]), st.lists(VALUES, max_size=30))))
def test_filter_never_forgets_what_a_set_has(kit, steps):
    seen, plain = BloomFilter("model", 8), set()
    seen.clear()
    for step, values in steps:
        if step == "add":
            for value in values:
                assert seen.add(value) in ((True, False) if value not in plain else (False,))
                plain.add(value)
        elif step == "many":
            assert not any(new for value, new in zip(values, seen.add_many(values), strict=True) if value in plain)
            plain.update(values)
        elif step == "rebuild":
            seen.rebuild(values)
            plain = set(values)
        else:
            seen.clear()
            plain.clear()
        assert all(seen.contains_many(plain))


def test_full_filter_gets_layers_and_stays_within_its_error(kit):
    seen = BloomFilter("grows", 2000, 0.02)
    seen.add_many(range(2000))
    full = seen.info()
    assert full.layers == 1
    assert full.fill > 0.97
    assert sum(seen.contains_many(range(10**6, 10**6 + 10_000))) < 0.02 * 1.1 * 10_000
    seen.add_many(range(8000))
    grown = seen.info()
    assert grown.layers == 3
    assert grown.error <= 0.02
    assert all(seen.contains_many(range(8000)))
    assert sum(seen.contains_many(range(10**6, 10**6 + 10_000))) < 0.02 * 1.1 * 10_000


def test_batch_larger_than_the_capacity_fills_layers_in_turn(kit):
    seen = BloomFilter("tiny", 1, 0.5)
    seen.add_many(range(300))
    assert all(seen.contains_many(range(300)))
    assert seen.info().layers > 5


def test_layer_above_32_mib_is_split(kit, small_parts):
    seen = BloomFilter("parts", 2000)
    seen.add_many(range(2000))
    assert all(seen.contains_many(range(2000)))
    assert sum(seen.contains_many(range(10**6, 10**6 + 10_000))) < 110
    sizes = [kit.client.strlen(key) for key in kit.keys() if ":bits:" in key]
    assert sorted(sizes)[1:] == [512] * (len(sizes) - 1)
    assert len(sizes) == 5


def test_memory_is_near_the_optimum(kit):
    seen = BloomFilter("memory", 100_000)
    seen.add(1)
    (key,) = [key for key in kit.keys() if ":bits:" in key]
    optimum = 9.585 * 100_000 / 8
    assert kit.client.memory_usage(key) < 1.2 * optimum
    assert seen.info().memory < 1.1 * optimum


def test_adds_during_a_rebuild_go_to_both_generations(kit):
    seen, other = BloomFilter("both", 1000), BloomFilter("both", 1000)
    seen.add_many(["old", "kept"])

    def values():
        assert other.add("meanwhile") is True
        assert "old" in other
        yield "kept"
        assert other.info().rebuilding
        other.add_many(range(1500))  # both generations grow

    seen.rebuild(values())
    assert all(seen.contains_many(["kept", "meanwhile", *range(1500)]))
    assert "old" not in seen
    info = seen.info()
    assert info.rebuilding is False


def test_second_rebuild_is_refused_while_one_runs(kit):
    seen = BloomFilter("one", 1000)

    def values():
        with pytest.raises(RebuildRunning, match="'one'"):
            seen.rebuild([2])
        yield 1

    assert seen.rebuild(values()) == 1
    assert seen.rebuild([2]) == 1


@pytest.mark.parametrize("place", range(1, 14))
def test_rebuild_killed_at_any_step_changes_nothing(kit, place):
    seen = BloomFilter("killed", 1000)
    seen.add("old")
    rebuild, client = unwrap(BloomFilter.rebuild)(seen, iter(range(3000))), connections.client("default")
    reply, steps = None, 0
    with suppress(StopIteration):
        for _ in range(place):
            reply, steps = rebuild.send(reply).run(client), steps + 1
    assert seen.contains_many(["old", 0, 1500, 2999]) == (
        [False, True, True, True] if steps == STEPS else [True] + 3 * [False]
    )
    kit.client.delete(*[key for key in kit.keys() if key.endswith(":lease")] or ["none"])
    seen.add("new")  # drops the dead generation
    assert "new" in seen
    seen.rebuild(["again"])
    assert seen.contains_many(["old", "new", "again"]) == [False, False, True]
    assert len([key for key in kit.keys() if ":bits:" in key]) == 1
    rebuild.close()


def test_rebuild_that_counted_as_dead_fails(kit):
    seen = BloomFilter("late", 1000)
    seen.add("old")

    def values():
        yield from range(1000)
        kit.client.delete(*[key for key in kit.keys() if key.endswith(":lease")])
        seen.add("new")
        yield 1

    with pytest.raises(RebuildLost):
        seen.rebuild(values())
    assert seen.contains_many(["old", "new", 5]) == [True, True, False]


def test_rebuild_fails_if_the_server_restarts_and_adds_may_be_lost(make_server, settings, tmp_path):
    from tests.fixtures.kit import Kit

    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data")
    kit = Kit(server, settings)
    seen = BloomFilter("restart", 1000)
    seen.add_many(range(100))
    seen.rebuild(range(100))

    def values():
        yield 1
        server.restart()
        seen.add("meanwhile")

    with pytest.raises((RebuildLost, RedisUnavailable)):
        seen.rebuild(values())
    assert all(seen.contains_many(range(100)))
    kit.close()


def test_window_forgets_old_values_and_no_others(kit):
    seen = BloomFilter("week", 1000, window=timedelta(seconds=2))
    state = seen.key("state")

    def age(seconds):
        """Let all generations be older."""
        for field, value in kit.client.hgetall(state).items():
            if field.startswith("since:"):
                kit.client.hset(state, field, int(value) - seconds * 1000)

    seen.add("first")
    assert 2000 < kit.client.pttl(seen._generations.keys_of(seen._generations.shape)[0]) <= 2500
    for number in range(4):
        age(1)
        assert seen.add("first" if number == 0 else number) is (number > 0)
        assert "first" in seen
    assert len(seen._generations.shape.active) == 5
    for number in range(10, 14):
        age(1)
        seen.add(number)
    assert "first" not in seen
    assert seen.contains_many([10, 11, 12, 13]) == [True] * 4


def test_generation_that_another_process_changed_is_learned(kit):
    one, two = BloomFilter("shared", 1000), BloomFilter("shared", 1000)
    one.add(1)
    stale = one._generations
    shape = stale.shape
    two.rebuild([2])
    stale.learn(None, str(shape).encode())  # as a process that has not called since
    assert one.contains_many([1, 2]) == [False, True]
    kit.client.delete(*kit.keys())
    assert one.contains_many([1, 2]) == [False, False]
    assert one.add(3) is True
    stale.learn(None, f"{Generation.new().id}:1".encode())
    assert one.add(3) is False


def test_key_of_another_type_is_named(kit):
    seen = BloomFilter("wrong", 1000)
    kit.client.set(seen.key("state"), "x")
    with pytest.raises(KeyConflict, match="state"):
        seen.add(1)


def test_policy_open_answers_that_a_value_may_be_there(own_kit):
    own_kit.options(BLOOM={"ON_FAILURE": "open"})
    seen = BloomFilter("open", 1000)
    own_kit.server.stop()
    assert seen.contains_many([1, 2]) == [True, True]
    with pytest.raises(RedisUnavailable):
        seen.add(1)


def test_add_during_the_first_rebuild_is_found_at_once(kit):
    seen = BloomFilter("first", 1000)

    def values():
        assert seen.add("meanwhile") is True
        assert "meanwhile" in seen
        yield "value"

    seen.rebuild(values())
    assert seen.contains_many(["meanwhile", "value"]) == [True, True]


@pytest.mark.parametrize(("capacity", "error"), [(1, 0.01), (5, 0.001), (10, 0.001), (100, 0.001), (1000, 1e-4)])
def test_small_filters_stay_within_their_error(kit, capacity, error):
    seen = BloomFilter("small", capacity, error)
    seen.add_many(range(capacity))
    assert seen.info().layers == 1
    assert sum(seen.contains_many(range(10**6, 10**6 + 20_000))) <= 1.2 * error * 20_000


def test_rebuild_takes_asynchronous_values(kit):
    seen = BloomFilter("async", 5000)

    async def values():
        for number in range(2500):
            yield number

    assert asyncio.run(seen.arebuild(values())) == 2500
    assert all(seen.contains_many(range(2500)))
    assert asyncio.run(seen.arebuild(range(3))) == 3
    with pytest.raises(InvalidValue, match="Give a list of values"):
        seen.rebuild(values())
    assert seen.rebuild([1]) == 1


@pytest.mark.parametrize("values", [None, 5, "abc", b"abc"])
def test_rebuild_from_no_list_is_refused(kit, values):
    with pytest.raises(InvalidValue, match="Give a list of values"):
        BloomFilter("seen").rebuild(values)


def test_filter_with_a_window_can_not_be_rebuilt(kit):
    with pytest.raises(InvalidValue, match="window"):
        BloomFilter("week", window=timedelta(days=7)).rebuild([1])
    assert kit.keys() == []


@pytest.mark.parametrize("step", ["start", "switch"])
def test_rebuild_whose_reply_is_lost_holds_nothing_up(kit, monkeypatch, step):
    seen, call = BloomFilter("lost", 1000), Client.call
    seen.add("before")

    def lossy(client, *command):
        reply = call(client, *command)
        if step in command:
            raise RedisUnavailable("lost", indeterminate=True)
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(Client, "call", lossy)
        with pytest.raises(RedisUnavailable):
            seen.rebuild(["after"])
    assert seen.contains_many(["before", "after"]) == ([True, False] if step == "start" else [False, True])
    assert seen.rebuild(["after"]) == 1


def test_repeated_start_of_a_rebuild_changes_nothing(kit):
    seen = BloomFilter("again", 1000)
    generations, token = seen._generations, Generation.new().id
    first = seen.run_flow(generations.start(token))
    generations.learn(None, None)  # as after a lost reply
    assert seen.run_flow(generations.start(token)) == first


def test_large_filter_is_allocated_in_several_calls(kit, small_parts, trips):
    seen = BloomFilter("large", 2000)
    seen.add(1)
    bitmaps = [key for key in kit.keys() if ":bits:" in key]
    assert len(bitmaps) == 5
    assert len(trips) == 10  # to learn, list, reserve, five bitmaps, the change, and the add
    assert [kit.client.pttl(key) for key in bitmaps] == [-1] * 5


def test_processes_that_begin_a_large_filter_at_once_allocate_it_once(kit, small_parts):
    flows = [BloomFilter("large", 2000)._add([digest(number)]) for number in range(8)]
    side_by_side(flows)
    assert len([key for key in kit.keys() if ":bits:" in key]) == 5
    assert all(BloomFilter("large", 2000).contains_many(range(8)))


def test_bitmaps_of_a_process_that_dies_end_by_themselves(kit, small_parts):
    seen, client = BloomFilter("large", 2000), connections.client("default")
    add = seen._add([digest(1)])
    reply = None
    for _ in range(5):
        reply = add.send(reply).run(client)
    add.close()
    bitmaps = [key for key in kit.keys() if ":bits:" in key]
    assert bitmaps
    assert all(0 < kit.client.pttl(key) <= 60_000 for key in bitmaps)
    assert seen.add(1) is True
    assert seen.info().memory < 3000


def test_second_rebuild_of_a_large_filter_allocates_nothing(kit, small_parts):
    seen = BloomFilter("large", 2000)

    def values():
        before = kit.keys()
        with pytest.raises(RebuildRunning):
            seen.rebuild([2])
        assert kit.keys() == before
        yield 1

    assert seen.rebuild(values()) == 1


@pytest.mark.parametrize("during", ["a rebuild", "the adds"])
def test_clear_beside_other_calls(kit, during):
    seen = BloomFilter("clear", 1000)
    seen.add("old")
    if during == "a rebuild":

        def values():
            yield from range(1000)
            seen.clear()
            seen.add("x")
            yield from range(1000, 2000)

        with pytest.raises(RebuildLost):
            seen.rebuild(values())
        assert seen.contains_many([1500, "old", "x"]) == [False, False, True]
    else:
        clear = seen._generations.clear()
        step = clear.send(None)
        seen.add("during")
        seen.run_flow(_rest(clear, step))
        seen.add("new")
        assert seen.contains_many(["during", "new"]) == [False, True]
        assert "clear" in [name.decode() for name in kit.raw.zrange(f"{kit.prefix}:{{bloom:indexes}}:names", 0, -1)]


def _rest(flow, step):
    while True:
        reply = yield step
        try:
            step = flow.send(reply)
        except StopIteration as stop:
            return stop.value


def test_reply_that_comes_late_holds_no_rebuild_up(kit):
    """Another thread learns an older shape while a rebuild goes on."""
    seen, client = BloomFilter("late", 1000), connections.client("default")
    seen.add("a")
    seen._generations.learn(None, None)  # as in a new process
    late = seen._add([digest("b")])
    reply = late.send(None).run(client)

    def values():
        yield from range(1000)
        late.send(reply)
        yield from range(1000, 2000)

    assert seen.rebuild(values()) == 2000
    assert seen.rebuild(range(5)) == 5
    assert seen.contains_many([4, 1500]) == [True, False]


def test_add_during_which_the_shape_changes_reaches_the_filter(kit, monkeypatch):
    """A rebuild by another thread comes between the look at the shape and the call."""
    seen, other, arguments = BloomFilter("between", 1000), BloomFilter("between", 1000), BloomFilter._common_arguments
    seen.add("seed")

    def rebuilt(bloom, shape):
        monkeypatch.setattr(BloomFilter, "_common_arguments", arguments)
        other.rebuild(["seed"])
        return arguments(bloom, shape)

    monkeypatch.setattr(BloomFilter, "_common_arguments", rebuilt)
    assert seen.add("value") is True
    assert seen.contains_many(["seed", "value"]) == [True, True]
    assert len([key for key in kit.keys() if ":bits:" in key]) == 1
