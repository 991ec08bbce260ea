"""The servers and the proxy that the other tests stand on."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.sentinel import Sentinel

from tests.fixtures.proxy import Proxy
from tests.fixtures.servers import Cluster, SentinelGroup, Server, free_port, wait_for

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[2]


@pytest.fixture
def through(proxy: Proxy) -> Iterator[Any]:
    """A client with an open connection through the proxy, and 0.3 s of patience."""
    with proxy.client(socket_timeout=0.3, socket_connect_timeout=0.3) as connection:
        connection.delete("name", "number")
        yield connection


@pytest.fixture
def direct(tcp_valkey: Server) -> Iterator[Any]:
    with tcp_valkey.client() as connection:
        yield connection


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.parametrize("name", ["valkey", "tcp_valkey", "debian_redis", "own_server"])
def test_each_server_answers_at_its_address_and_empties(request: pytest.FixtureRequest, name: str) -> None:
    server = request.getfixturevalue(name)
    assert server.connection == {"URL": server.url}
    assert server.url.startswith("redis://127.0.0.1:" if name in ("tcp_valkey", "own_server") else "unix:///")
    with server.client() as connection:
        assert [connection.info("server")["process_id"]] == server.pids
        connection.set("name", "value")
        server.flush()
        assert connection.dbsize() == 0
        connection.execute_command("DEBUG", "SLEEP", "0")


def test_servers_are_the_kinds_they_claim_to_be(valkey: Server, debian_redis: Server) -> None:
    with valkey.client() as new, debian_redis.client() as old:
        assert new.info("server")["server_name"] == "valkey"
        assert "server_name" not in old.info("server")
        assert int(old.info("server")["redis_version"].split(".")[0]) >= 7


def test_frozen_server_is_silent_until_it_thaws(own_server: Server) -> None:
    with own_server.client(socket_timeout=0.2) as connection:
        connection.ping()
        own_server.freeze()
        with pytest.raises(redis.TimeoutError):
            connection.ping()
        own_server.thaw()
        assert connection.ping()


@pytest.mark.parametrize("tcp", [True, False])
def test_server_comes_back_at_its_address(make_server: Callable[..., Server], tcp: bool) -> None:
    server = make_server(tcp=tcp)
    url, pids = server.url, server.pids
    with server.client() as connection:
        connection.set("name", "value")
        server.stop()
        assert server.pids == []
        assert not alive(pids[0])
        with pytest.raises(redis.ConnectionError):
            connection.ping()
        server.start()
        server.restart()
        assert server.url == url
        assert connection.get("name") is None


def test_persistent_server_keeps_its_data_over_a_restart(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path)
    with server.client() as connection:
        connection.set("name", "value")
        server.restart()
        assert connection.get("name") == "value"


def test_taken_port_is_left_for_another(make_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = make_server(tcp=True).port, free_port()
    offers = iter([taken, taken, free])
    monkeypatch.setattr("tests.fixtures.process.free_port", lambda: next(offers))
    assert make_server(tcp=True).port == free


def test_sentinels_lead_to_the_primary_before_and_after_a_fail_over(sentinel: SentinelGroup) -> None:
    watchers = Sentinel(sentinel.connection["SENTINELS"], decode_responses=True)
    service, url = sentinel.connection["SERVICE"], sentinel.url
    primary = watchers.master_for(service)
    primary.set("name", "value")
    assert primary.wait(1, 1000) == 1

    sentinel.fail_over()
    assert sentinel.url != url
    assert watchers.discover_master(service) == ("127.0.0.1", sentinel.primary.port)
    # The client notices by an error that its server is no primary any more.
    wait_for(lambda: primary.set("other", "value"))
    assert primary.get("name") == "value"
    assert len(sentinel.pids) == 5
    primary.close()
    for watcher in watchers.sentinels:
        watcher.close()


def test_group_is_whole_again_after_its_primary_crashed(sentinel: SentinelGroup) -> None:
    dead = sentinel.primary.pids
    with sentinel.primary.client() as connection:
        connection.set("name", "value")
        assert connection.wait(1, 1000) == 1
    sentinel.fail_over(crash=True)
    assert not alive(dead[0])
    with sentinel.primary.client() as connection:
        assert connection.get("name") == "value"
        assert connection.info("replication")["connected_slaves"] == 1
    sentinel.flush()


def test_cluster_covers_all_slots_with_three_primaries(cluster: Cluster) -> None:
    with contextlib.closing(redis.RedisCluster.from_url(cluster.connection["CLUSTER"], decode_responses=True)) as nodes:
        assert len(nodes.get_primaries()) == 3
        assert {nodes.keyslot(f"key:{number}") * 3 // 16384 for number in range(100)} == {0, 1, 2}
        for number in range(100):
            nodes.set(f"key:{number}", number)
        assert [nodes.get(f"key:{number}") for number in range(100)] == [str(number) for number in range(100)]
        cluster.flush()
        assert nodes.dbsize() == 0


def test_thawed_cluster_serves_on(cluster: Cluster) -> None:
    with cluster.nodes[0].client(socket_timeout=0.2) as connection:
        cluster.freeze()
        with pytest.raises(redis.TimeoutError):
            connection.ping()
        cluster.thaw()
        assert wait_for(lambda: connection.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


SESSION = """
import signal

def test_start(valkey, sentinel, own_server):
    print("\\npids", *valkey.pids, *sentinel.pids, *own_server.pids, flush=True)
    signal.alarm(30)
    signal.pause()
"""


def test_no_server_outlives_a_killed_test_process(tmp_path: Path) -> None:
    (tmp_path / "test_session.py").write_text(SESSION)
    options = ["-s", "-q", "-p", "no:randomly", "-p", "tests.fixtures.servers", "-c", os.devnull, str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    try:
        line = next(line for line in process.stdout if line.startswith("pids"))
        pids = [int(pid) for pid in line.split()[1:]]
        assert len(pids) == 1 + 5 + 1
        assert all(map(alive, pids))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    wait_for(lambda: not any(map(alive, pids)))


def test_proxy_passes_all_on_and_counts_it(proxy: Proxy, through: Any) -> None:
    assert proxy.connections == 1
    requests, replies = proxy.requests, proxy.replies
    assert requests == replies
    text = "x" * 200_000
    through.set("name", text)
    assert through.get("name") == text
    assert through.mget(["name", "nothing"]) == [text, None]
    assert through.config_get("maxmemory*")
    assert through.pipeline(transaction=True).get("name").incr("number").execute() == [text, 1]
    assert (proxy.requests - requests, proxy.replies - replies) == (8, 8)


def test_proxy_passes_pushed_messages_which_are_no_replies(proxy: Proxy, direct: Any) -> None:
    with proxy.client(protocol=3) as connection, connection.pubsub() as listener:
        listener.subscribe("channel")
        assert listener.get_message(timeout=2)["type"] == "subscribe"
        replies = proxy.replies
        direct.publish("channel", "text")
        assert listener.get_message(timeout=2)["data"] == "text"
        assert proxy.replies == replies


def test_delayed_reply_comes_late(proxy: Proxy, through: Any) -> None:
    with proxy.fault("delay", seconds=0.1):
        since = time.monotonic()
        assert through.incr("name") == 1
        assert time.monotonic() - since >= 0.1
    since = time.monotonic()
    through.ping()
    assert time.monotonic() - since < 0.1


def test_black_hole_swallows_commands(proxy: Proxy, through: Any, direct: Any) -> None:
    with proxy.fault("blackhole"), pytest.raises(redis.TimeoutError):
        through.incr("name")
    assert direct.get("name") is None
    assert through.incr("name") == 1


def test_refusal_keeps_open_connections_only(proxy: Proxy, through: Any) -> None:
    with proxy.fault("refuse"), proxy.client() as late:
        assert through.ping()
        with pytest.raises(redis.ConnectionError, match="refused"):
            late.ping()
    with proxy.client() as late:
        assert late.ping()


def test_reset_ends_open_and_new_connections(proxy: Proxy, through: Any, direct: Any) -> None:
    with proxy.fault("rst"), proxy.client() as late:
        for connection in (through, late):
            with pytest.raises(redis.ConnectionError):
                connection.incr("name")
    assert direct.get("name") is None
    assert through.incr("name") == 1


def test_lost_reply_leaves_the_effect(proxy: Proxy, through: Any, direct: Any) -> None:
    with proxy.fault("drop_replies"), pytest.raises(redis.TimeoutError):
        through.incr("name")
    assert direct.get("name") == "1"


def test_cut_reply_leaves_the_effect_and_the_client_waiting(proxy: Proxy, through: Any, direct: Any) -> None:
    with proxy.fault("cut_reply"), pytest.raises(redis.TimeoutError):
        through.incr("name")
    assert direct.get("name") == "1"
    assert through.get("name") == "1"


def test_dripping_reply_arrives_whole(proxy: Proxy, through: Any) -> None:
    through.set("name", "x" * 20)
    with proxy.fault("drip", seconds=0.005):
        since = time.monotonic()
        assert through.get("name") == "x" * 20
        assert time.monotonic() - since >= 0.1


def test_killed_connections_break_a_command_under_way(proxy: Proxy, direct: Any) -> None:
    def kill_when_asked(requests: int) -> None:
        wait_for(lambda: proxy.requests > requests)
        proxy.kill_all()

    with proxy.client(socket_timeout=10) as connection, proxy.fault("blackhole"):
        thread = threading.Thread(target=kill_when_asked, args=(proxy.requests,))
        thread.start()
        with pytest.raises(redis.ConnectionError) as raised:
            connection.incr("name")
        thread.join()
    assert not isinstance(raised.value, redis.TimeoutError)
    assert direct.ping()
