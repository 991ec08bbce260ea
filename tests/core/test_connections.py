"""Clients: one reply per command, one error map, and no surprises after forks, loops and server trouble."""

import asyncio
import contextlib
import gc
import os
import threading
from urllib.parse import urlsplit

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.errors import ConfigurationError, KeyConflict, OutOfMemory, PermissionDenied, RedisUnavailable
from redis_kit.core.scripts import Script
from redis_kit.core.steps import Batch, Call, Pop
from tests.fixtures.kit import Kit
from tests.fixtures.process import forked, free_port
from tests.fixtures.servers import wait_for

COUNT = Script("count", "-- KEYS[1] counter\nreturn redis.call('INCR', KEYS[1])")


def one(step):
    return (yield step)


@pytest.fixture(params=["sync", "async"])
def do(request):
    """Carry out one step on the default connection, by either driver."""
    if request.param == "sync":
        yield lambda step, profile="request": flow.run(one(step), connections.client("default", profile))
        return
    with asyncio.Runner() as runner:

        async def carried_out(step, profile):
            return await flow.arun(one(step), connections.aclient("default", profile))

        yield lambda step, profile="request": runner.run(carried_out(step, profile))


def test_command_script_batch_and_wait(any_kit, do):
    key = f"{any_kit.prefix}:{{a}}"
    assert do(Call("SET", key, 5)) == b"OK"
    assert do(COUNT([key])) == 6
    assert do(Batch([COUNT([key]), Call("GET", key), Call("GET", f"{any_kit.prefix}:{{b}}")])) == [7, b"7", None]
    assert do(Pop(f"{any_kit.prefix}:{{list}}", timeout=0.02)) is None
    do(Call("RPUSH", f"{any_kit.prefix}:{{list}}", b"\xff\x00"))
    assert do(Pop(f"{any_kit.prefix}:{{list}}", timeout=1)) == b"\xff\x00"


def test_batch_names_the_key_of_a_wrong_type_and_keeps_the_other_replies(any_kit, do):
    good, bad = f"{any_kit.prefix}:{{a}}", f"{any_kit.prefix}:{{b}}"
    count = Script("count", "-- KEYS[1] number counter\nreturn redis.call('INCR', KEYS[1])")
    do(Call("HSET", bad, "x", 1))
    with pytest.raises(KeyConflict, match=f"The key '{bad}' is a hash in place of a string"):
        do(Batch([count([good]), count([bad])]))
    first, wrong, plain, second = do(
        Batch([count([good]), count([bad]), Call("GET", bad), count([good])], lenient=True)
    )
    assert (first, second) == (2, 3)
    assert f"{bad!a}" in str(wrong)
    assert isinstance(plain, KeyConflict)


def test_batch_over_several_slots_keeps_the_order(any_kit, do):
    keys = [f"{any_kit.prefix}:{{{number}}}" for number in range(50)]
    do(Batch([Call("SET", key, number) for number, key in enumerate(keys)]))
    assert do(Batch([Call("GET", key) for key in keys])) == [str(number).encode() for number in range(50)]


def test_a_lost_script_never_reaches_the_caller(kit, do):
    key = f"{kit.prefix}:a"
    for expected in (1, 2):
        kit.client.script_flush()
        assert do(COUNT([key])) == expected
    kit.client.script_flush()
    assert do(Batch([COUNT([key]), COUNT([key])])) == [3, 4]


def test_scripts_survive_a_flush_at_any_moment(kit, do):
    done = threading.Event()

    def flush():
        while not done.wait(0.001):  # without a pause the server may have time for nothing else
            kit.client.script_flush()

    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        counts = [do(COUNT([f"{kit.prefix}:a"])) for _ in range(300)]
    finally:
        done.set()
        flusher.join()
    assert counts == list(range(1, 301))


def test_wrong_type_is_a_conflict(kit, do):
    do(Call("SET", f"{kit.prefix}:a", 1))
    with pytest.raises(KeyConflict):
        do(Call("LPUSH", f"{kit.prefix}:a", 1))
    with pytest.raises(KeyConflict):
        do(Batch([Call("LPUSH", f"{kit.prefix}:a", 1)]))
    do(Call("HSET", f"{kit.prefix}:h", "a", "text"))
    do(Call("SET", f"{kit.prefix}:b", "text"))
    for step in (Call("HINCRBY", f"{kit.prefix}:h", "a", 1), COUNT([f"{kit.prefix}:b"])):
        with pytest.raises(KeyConflict):
            do(step)
    assert do(Call("GET", f"{kit.prefix}:a")) == b"1"


def test_full_server(own_kit, do):
    own_kit.client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemory):
        do(Call("SET", "a", 1))
    own_kit.client.config_set("maxmemory", 0)
    assert do(Call("SET", "a", 1)) == b"OK"


def test_refused_credentials_and_commands(own_kit, do):
    own_kit.client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get")
    port = own_kit.server.port
    own_kit.connect({"URL": f"redis://reader:secret@127.0.0.1:{port}"})
    with pytest.raises(PermissionDenied, match=r"'?set'?"):
        do(Call("SET", "a", 1))
    own_kit.connect({"URL": f"redis://reader:guess@127.0.0.1:{port}"})
    with pytest.raises(PermissionDenied) as caught:
        do(Call("GET", "a"))
    assert "guess" not in str(caught.value)


@pytest.mark.parametrize("servers", ["valkey", "debian_redis"])
@pytest.mark.parametrize("body", ['redis.call("SET", KEYS[1], 1)', 'redis.call("GET", "other")'])
def test_command_or_key_that_is_refused_inside_a_script_is_refused_access(request, settings, do, servers, body):
    kit = Kit(request.getfixturevalue(servers), settings)
    user = f"u{kit.prefix}"
    kit.client.execute_command("ACL", "SETUSER", user, "on", "nopass", f"~{kit.prefix}:*", "+@all", "-set")
    try:
        address = urlsplit(kit.url)
        kit.connect(
            {"URL": f"{address.scheme}://{user}:x@{address.path if address.scheme == 'unix' else address.netloc}"}
        )
        script = Script("refused", f"#!lua\n-- KEYS[1]  key  string: any\n{body}")
        for step in (script([f"{kit.prefix}:a"]), Batch([script([f"{kit.prefix}:a"])])):
            with pytest.raises(PermissionDenied, match="refused access"):
                do(step)
    finally:
        kit.client.acl_deluser(user)
        kit.close()


def test_demoted_server_is_unavailable_and_the_next_call_reconnects(own_kit, do):
    do(Call("SET", "a", 1))
    own_kit.client.execute_command("REPLICAOF", "127.0.0.1", 1)
    with pytest.raises(RedisUnavailable) as caught:
        do(Call("SET", "a", 2))
    assert not caught.value.indeterminate
    own_kit.client.execute_command("REPLICAOF", "NO", "ONE")
    assert do(Call("SET", "a", 3)) == b"OK"


def test_a_stopped_server_fails_plainly_and_a_frozen_one_indeterminately(own_kit, do):
    do(Call("PING"))
    own_kit.server.freeze()
    with pytest.raises(RedisUnavailable) as frozen:
        do(Call("INCR", "a"))
    own_kit.server.thaw()
    assert frozen.value.indeterminate
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable) as stopped:
        do(Call("INCR", "a"))
    assert not stopped.value.indeterminate


def test_a_late_reply_is_never_taken_for_the_next_one(own_kit, do):
    do(Call("SET", "a", "first"))
    own_kit.server.freeze()
    with pytest.raises(RedisUnavailable):
        do(Call("GET", "a"))
    own_kit.server.thaw()
    for number in range(20):
        do(Call("SET", "b", number))
        assert do(Call("GET", "b")) == str(number).encode()


def test_restarted_server_is_used_without_an_error(own_kit, do):
    do(Call("PING"))
    own_kit.server.restart()
    assert do(Call("PING")) == b"PONG"


def test_idle_connection_that_was_reset_is_replaced(kit, proxy):
    kit.connect(proxy.connection)

    async def main():
        client = connections.aclient()
        assert await client.call("PING") == b"PONG"
        proxy.kill_all()
        for _ in range(20):  # the loop takes note of the reset
            await asyncio.sleep(0.005)
        assert await client.call("PING") == b"PONG"

    asyncio.run(main())


def test_waiting_outlasts_the_read_timeout(kit, do):
    kit.options(READ_TIMEOUT=0.2)
    assert do(Pop(f"{kit.prefix}:nothing", timeout=0.6)) is None


def test_sentinel_fail_over_is_followed(sentinel, settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": sentinel.connection}}
    client = connections.client()
    assert client.call("SET", "a", 1) == b"OK"
    sentinel.fail_over()

    def works():
        with contextlib.suppress(RedisUnavailable):
            return client.call("SET", "a", 2) == b"OK"

    wait_for(works)
    assert sentinel.primary.client().get("a") == "2"


STEPS = {
    "call": lambda key: Call("GET", key),
    "batch": lambda key: Batch([Call("GET", key), Call("LPOP", key)], lenient=True),
    "block": lambda key: Pop(f"{key}:list", timeout=0.01),
    "watch": lambda key: Watching(f"{key}:count"),
}


@pytest.mark.parametrize("kind", STEPS)
def test_breaker_forgets_failures_before_a_reply(kind, kit, do):
    key = f"{kit.prefix}:a"
    kit.client.set(key, 1)
    breaker = connections.client().breaker
    for _ in range(4):
        breaker.failed(RedisUnavailable("gone"))
        do(STEPS[kind](key))
    assert not breaker.is_open
    assert not breaker.failures


def test_breaker_counts_replies_of_a_batch_that_refuse_to_serve(own_kit, do):
    with own_kit.client as client:
        client.replicaof("127.0.0.1", 1)
    with pytest.raises(RedisUnavailable, match="read only replica"):
        do(Batch([Call("SET", "a", 1)]))
    assert len(connections.client().breaker.failures) == 1


class Watching:
    """A step: wait for a list, with a command behind it that counts."""

    def __init__(self, key):
        self.commands = ("BLPOP", f"{key}:list", "0.2"), ("INCR", key)

    def run(self, client):
        assert isinstance(client.watch(0.2, 5, None, *self.commands), int)

    async def arun(self, client):
        assert isinstance(await client.watch(0.2, 5, None, *self.commands), int)


def test_cluster_slot_that_moved_is_followed(cluster, settings, do):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": cluster.connection}}
    slot = cluster.nodes[0].client().execute_command("CLUSTER KEYSLOT", "{moving}")
    source = cluster.owner("{moving}")
    target = next(node for node in cluster.nodes if node is not source)
    assert do(Call("SET", "{moving}:a", 1)) == b"OK"
    _migrate(cluster, slot, source, target, lambda: do(Call("INCR", "{moving}:a")))
    assert do(COUNT(["{moving}:a"])) == 3
    _migrate(cluster, slot, target, source, lambda: do(Batch([Call("INCR", "{moving}:a")])))
    _migrate(cluster, slot, source, target, lambda: do(Watching("{moving}:b")))
    _migrate(cluster, slot, target, source, lambda: do(Watching("{moving}:c")))
    assert do(Call("GET", "{moving}:a")) == b"4"


def test_cluster_is_discovered_by_any_node_that_answers(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        kit.connect({"CLUSTER": [f"redis://127.0.0.1:{free_port()}", cluster.url]})
        assert do(Call("SET", f"{kit.prefix}:a", 1)) == b"OK"


def test_batch_follows_a_slot_that_moved_and_its_errors_are_replies(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        counter, text, elsewhere = (f"{kit.prefix}:{name}" for name in ("{a}:1", "{a}:2", "{b}"))
        calls = [Call("SET", text, "x"), COUNT([counter]), Call("SET", elsewhere, 1), Call("INCR", text)]
        source = cluster.owner(counter)
        target = next(node for node in cluster.nodes if node not in (source, cluster.owner(elsewhere)))
        assert do(COUNT([counter])) == 1
        slot = source.client().cluster("KEYSLOT", counter)
        for expected, old, new in ((2, source, target), (3, target, source)):
            new.client().script_flush()
            _migrate(cluster, slot, old, new, lambda: None)
            done, count, also, wrong = do(Batch(calls, lenient=True))
            assert [done, also] == [b"OK"] * 2
            assert count == expected
            assert "not an integer" in str(wrong)


def test_batch_follows_a_slot_on_its_way(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        keys = [f"{kit.prefix}:{{a}}:{part}" for part in range(3)]
        assert do(Call("SET", keys[0], 5)) == b"OK"
        source = cluster.owner(keys[0])
        target = next(node for node in cluster.nodes if node is not source)
        slot = source.client().cluster("KEYSLOT", keys[0])
        target.client().script_flush()

        def meanwhile():
            steps = [COUNT(keys[:1]), Call("SET", keys[1], "x"), Call("INCR", keys[1]), Call("GET", keys[2])]
            count, done, wrong, nothing = do(Batch(steps, lenient=True))
            assert [count, done, nothing] == [6, b"OK", None]
            assert "not an integer" in str(wrong)

        _migrate(cluster, slot, source, target, meanwhile)
        _migrate(cluster, slot, target, source, lambda: None)


def test_user_who_may_not_follow_a_slot_on_its_way_is_refused(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        key = f"{kit.prefix}:{{a}}"
        nodes = [node.client() for node in cluster.nodes]
        for node in nodes:
            node.execute_command("ACL", "SETUSER", kit.prefix, "on", "nopass", "~*", "+@all", "-asking")
        kit.connect({**cluster.connection, "USERNAME": kit.prefix, "PASSWORD": "any"})
        source = cluster.owner(key)
        target = next(node for node in cluster.nodes if node is not source)

        def meanwhile():
            for step in (Call("INCR", key), COUNT([key]), Batch([Call("INCR", key)]), Watching(key)):
                with pytest.raises(PermissionDenied, match="asking"):
                    do(step)

        _migrate(cluster, source.client().cluster("KEYSLOT", key), source, target, meanwhile)
        assert do(Call("INCR", key)) == 1
        for node in nodes:
            node.execute_command("ACL", "DELUSER", kit.prefix)


def test_node_of_a_cluster_in_place_of_the_cluster_is_named(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        kit.connect({"URL": cluster.url})
        keys = [f"{kit.prefix}:{{{name}}}" for name in "abcdef"]
        for step in (Batch([COUNT([key]) for key in keys], lenient=True), Call("MGET", *keys)):
            with pytest.raises(ConfigurationError, match=r"is a node of a Cluster.*'CLUSTER' in place of 'URL'"):
                do(step)


def test_server_in_place_of_a_cluster_is_named(kit, tcp_valkey, do):
    kit.connect({"CLUSTER": tcp_valkey.url})
    with pytest.raises(ConfigurationError, match=r"is not a node of a Cluster.*'URL' in place of 'CLUSTER'"):
        do(Call("GET", "a"))


def _migrate(cluster, slot, source, target, meanwhile):
    source_id, target_id = (node.client().execute_command("CLUSTER MYID") for node in (source, target))
    target.client().execute_command("CLUSTER SETSLOT", slot, "IMPORTING", source_id)
    source.client().execute_command("CLUSTER SETSLOT", slot, "MIGRATING", target_id)
    for key in source.client().execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
        source.client().execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 20_000)
    meanwhile()
    for node in (target, source, *cluster.nodes):
        node.client().execute_command("CLUSTER SETSLOT", slot, "NODE", target_id)


def test_forked_child_never_shares_a_socket(kit):
    client = connections.client()
    client.call("SET", f"{kit.prefix}:a", "parent")
    reader, writer = os.pipe()

    def ask():
        wrong = sum(connections.client().call("ECHO", f"c{number}") != f"c{number}".encode() for number in range(500))
        os.write(writer, b"%d" % wrong)

    child = forked(ask)
    assert [client.call("ECHO", f"p{number}") for number in range(500)] == [b"p%d" % number for number in range(500)]
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"0"
    os.close(reader)
    os.close(writer)


def test_threads_do_not_mix_replies(kit):
    wrong = []

    def echo(name):
        client = connections.client()
        sent = [f"{name}{number}" for number in range(300)]
        wrong.extend(text for text in sent if client.call("ECHO", text) != text.encode())

    threads = [threading.Thread(target=echo, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_each_loop_has_its_own_connections_which_end_with_it(kit):
    async def use():
        await asyncio.gather(*[connections.aclient().call("PING") for _ in range(5)])
        return len([entry for entry in kit.client.client_list() if entry["lib-name"].startswith("redis-py")])

    before = len(kit.client.client_list())
    assert asyncio.run(use()) >= before
    asyncio.run(use())
    gc.collect()
    wait_for(lambda: len(kit.client.client_list()) == before)


def test_a_cancelled_call_leaves_no_reply_behind(kit):
    async def main():
        client = connections.aclient()
        for number in range(50):
            task = asyncio.create_task(client.call("ECHO", "late"))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert await client.call("ECHO", number) == str(number).encode()

    asyncio.run(main())


def test_a_cancellation_is_never_swallowed(kit):
    async def call_and_stay():
        await connections.aclient().call("PING")
        await asyncio.Event().wait()

    async def main():
        for turn in range(60):
            task = asyncio.create_task(call_and_stay())
            for _ in range(turn % 6):
                await asyncio.sleep(0)
                kit.client.ping()  # meanwhile the reply comes in, of which the loop does not know yet
            task.cancel()
            await asyncio.wait({task}, timeout=5)
            assert task.cancelled()

    asyncio.run(main())


BOTH = Script("both", "-- KEYS[1] one\n-- KEYS[2] other\nreturn redis.call('INCR', KEYS[1])")


def test_slot_on_its_way_to_another_node_is_waited_for_and_not_for_long(cluster, settings, do):
    with contextlib.closing(Kit(cluster, settings)) as kit:
        keys = [f"{kit.prefix}:{{a}}:{part}" for part in ("one", "other")]
        assert do(BOTH(keys)) == 1
        source = cluster.owner(keys[0])
        target = next(node for node in cluster.nodes if node is not source)
        with source.client() as old, target.client() as new:
            slot = old.cluster("KEYSLOT", keys[0])
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", cluster.id(source))
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", cluster.id(target))
            try:
                with pytest.raises(RedisUnavailable, match="moving") as caught:
                    do(Batch([BOTH(keys)]))
                assert not caught.value.indeterminate
                soon = threading.Timer(0.05, old.execute_command, ("CLUSTER SETSLOT", slot, "STABLE"))
                soon.start()
                assert do(BOTH(keys)) == 2
                soon.join()
            finally:
                for connection in (old, new):
                    connection.execute_command("CLUSTER SETSLOT", slot, "STABLE")
