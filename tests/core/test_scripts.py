"""Scripts: their headers are held to, and lost ones are sent again."""

import pytest

from redis_kit.core import connections, scripts
from redis_kit.core.errors import CommandFailed, KeyConflict
from redis_kit.core.scripts import Script
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import Queue


def test_wrong_number_of_keys_is_refused_before_anything_is_sent():
    script = Script("two", "-- KEYS[1] one\n-- KEYS[2] two\nreturn 1")
    with pytest.raises(TypeError, match="takes 2 keys, not 1"):
        script(["a"])


def test_open_ended_keys_take_any_number_of_keys():
    script = Script("many", "-- KEYS[1] first\n-- KEYS[2...] others\nreturn 1")
    assert script(["a", "b", "c"]).command[2] == 3
    assert script(["a"]).command[2] == 1
    with pytest.raises(TypeError):
        script([])


def test_last_keys_may_be_left_out_and_have_types_of_their_own():
    script = Script("more", "-- KEYS[1] first list\n-- KEYS[2...] second hash\n-- KEYS[3...] third zset\nreturn 1")
    assert [script(keys).command[2] for keys in (["a"], ["a", "b"], ["a", "b", "c"])] == [1, 2, 3]
    assert script.kinds == ["list", "hash", "zset"]


def test_call_goes_by_digest_and_has_its_source_at_hand():
    script = Script("one", "-- KEYS[1] one\nreturn 1")
    call = script(["a"], ["x"])
    assert call.command == ("EVALSHA", script.digest, 1, "a", "x")
    assert call.with_source() == ("EVAL", script.source, 1, "a", "x")


def test_scripts_are_loaded_once():
    assert scripts.load("redis_kit.locks", "acquire") is scripts.load("redis_kit.locks", "acquire")


def test_include_may_have_includes(tmp_path, monkeypatch):
    texts = {
        "add": "-- KEYS[1]  sums  hash\n-- @include _double\nreturn double(2)\n",
        "_double": "-- @include _sum\nlocal function double(x) return sum(x, x) end\n",
        "_sum": "local function sum(a, b) return a + b end\n",
    }
    folder = tmp_path / "sums" / "scripts"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name, text in texts.items():
        (folder / f"{name}.lua").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    source = scripts.load("sums", "add").source
    assert source.index("function sum(") < source.index("function double(") < source.index("return double(")
    assert "@include" not in source


LIMITS = "redis_kit.queues.features.limits"


def test_line_that_checks_types_becomes_one_command_for_each_key():
    source = scripts.load("redis_kit.queues.management", "requeue").source
    assert 'redis.call("ZCARD", dead) redis.call("ZCARD", scheduled) redis.call("HLEN", reasons)' in source
    assert "@check_types" not in source


def test_hooks_are_filled_with_the_parts_of_other_packages():
    plain, filled = (scripts.load("redis_kit.queues.management", "list_jobs", hooks=hooks) for hooks in ((), (LIMITS,)))
    assert "@hook" not in plain.source + filled.source
    assert (plain.keys, filled.keys) == (6, 8)
    assert 'ZLEXCOUNT", parked' in filled.source


@pytest.mark.parametrize("cold", [False, True])
def test_key_of_another_type_is_named(kit, twin, cold):
    queue = Queue("mail")
    queue.put(1)
    if cold:
        kit.client.script_flush()
        queue.counts()
    kit.client.delete(queue.key("ready"))
    kit.client.set(queue.key("ready"), "mine")
    with pytest.raises(KeyConflict) as caught:
        twin(queue.put, 2)
    assert f"The key '{queue.key('ready')}' is a string in place of a zset" in str(caught.value)
    assert "rename or delete it" in str(caught.value)


def test_script_that_the_server_lost_is_sent_again_with_its_source(kit, twin, commands):
    queue = Queue("mail")
    queue.put(1)
    kit.client.script_flush()
    with commands(kit) as sent:
        twin(queue.put, 2)
        twin(queue.put, 3)
    assert sent == ["EVALSHA"] * 2
    assert queue.counts().ready == 3


def test_one_round_trip_repeats_all_of_a_batch_that_the_server_lost(kit, tries):
    kit.client.script_flush()
    first, second = (Script(name, f"-- KEYS[1] one\nreturn '{name}'") for name in ("first", "second"))
    assert Batch([first(["a"]), Call("ECHO", "x"), second(["a"])]).run(connections.client()) == [
        b"first",
        b"x",
        b"second",
    ]
    assert len(tries) == 2


def test_error_that_no_repeat_mends_is_raised_as_it_is(kit, tries):
    script = Script("bad", "-- KEYS[1] one\nreturn redis.error_reply('BAD luck')")
    kit.client.script_load(script.source)
    with pytest.raises(CommandFailed, match="BAD luck"):
        script(["a"]).run(connections.client())
    assert len(tries) == 1
