"""Errors of servers, such as refused access: each becomes an error of redis_kit."""

import asyncio
import contextlib
import json
import logging
import re
import shutil
import socket
import threading
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from redis_kit.core import connections, primitive
from redis_kit.core.errors import AuthenticationFailed, CommandFailed, PermissionDenied, RedisUnavailable
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.locks import Lock
from redis_kit.locks.inspection import held_locks
from redis_kit.queues import Queue
from redis_kit.throttling import Throttle, throttle
from tests.fixtures.kit import Kit
from tests.fixtures.process import client
from tests.fixtures.servers import Server, free_port, without_redis

pytestmark = pytest.mark.alone(4)
PASSWORD = "of the server"


@pytest.fixture(scope="module", params=["valkey", "debian"])
def guarded(request):
    """A server with a password."""
    binary = None if request.param == "valkey" else shutil.which("redis-server")
    if request.param == "debian" and binary is None:
        without_redis()
    server = Server(tcp=True, **({"binary": Path(binary)} if binary else {}))
    with server.client() as admin:
        admin.config_set("requirepass", PASSWORD)
    yield server
    server.stop()


@pytest.fixture
def refused(guarded, settings, monkeypatch):
    """The kit on it, without the password."""
    monkeypatch.setattr(primitive, "_log_limit", LogRateLimit())
    monkeypatch.setattr(primitive, "_unavailable", set())
    with contextlib.closing(Kit(guarded, settings)) as kit:
        yield kit


def test_locks_and_queues_name_the_refused_access(refused, twin):
    calls = [
        (Lock("a", timeout=3).acquire, {"blocking": False}),
        (Lock("b", timeout=3).acquire, {"blocking_timeout": 1}),
        (Queue("q").put, {"payload": {"number": 1}}),
        (Queue("q").claim, {"limit": 1}),
    ]
    for _ in range(2):
        for method, given in calls:
            payload = [given["payload"]] if "payload" in given else []
            named = {name: value for name, value in given.items() if name != "payload"}
            with pytest.raises(AuthenticationFailed, match="Redis refused access") as caught:
                twin(method, *payload, **named)
            assert refused.url.rsplit("/", 1)[0] in str(caught.value)


@pytest.mark.parametrize("policy", ["open", "closed", "local"])
def test_throttles_answer_by_their_policy(refused, twin, caplog, policy):
    rates = ("3/m", "3/m; 50/h; 100/d; 200/w")
    limits = [Throttle(f"t{len(one)}", rates=one, on_failure=policy) for one in rates]
    with caplog.at_level(logging.WARNING, "redis_kit"):
        for limit in limits:
            answers = [twin(limit.hit, "me").allowed for _ in range(4)]
            assert answers == {"open": [True] * 4, "closed": [False] * 4, "local": [True] * 3 + [False]}[policy]
    (line,) = caplog.messages
    assert "Redis refused access" in line


def test_throttled_view_is_not_an_error(refused):
    @throttle("2/h; 5/d; 9/w", key="ip", name="view")
    def view(request):
        return HttpResponse("fresh")

    @throttle("2/h; 5/d; 9/w", key="ip", name="view", on_failure="closed")
    async def closed(request):
        return HttpResponse("fresh")

    assert view(RequestFactory().get("/")).status_code == 200
    assert asyncio.run(closed(RequestFactory().get("/"))).status_code == 503


def test_large_commands_in_a_batch_fail_and_leave_no_connection(refused, twin):
    large = [("RPUSH", "list", *range(20))] * 3
    server = connections.client()
    for _ in range(2):
        with pytest.raises(AuthenticationFailed):
            server.batch(large)
    assert not server._pool._idle
    assert not server._pool._made


def test_password_turned_on_at_work_and_off_again(make_server, settings, twin):
    binary = shutil.which("redis-server")
    server = make_server(tcp=True, **({"binary": Path(binary)} if binary else {}))
    with contextlib.closing(Kit(server, settings)) as kit, server.client() as before:
        limit = Throttle("a", rates="10/m; 20/h; 30/d; 40/w", on_failure="closed")
        assert twin(limit.hit, "me")
        before.config_set("requirepass", PASSWORD)
        with client(kit.url, password=PASSWORD) as admin:
            admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            for _ in range(3):
                assert not twin(limit.hit, "me")
            with pytest.raises(AuthenticationFailed):
                twin(Queue("q").put, {"number": 1})
            admin.config_set("requirepass", "")
        assert twin(limit.hit, "me")


def test_other_errors_of_a_server_are_the_kits(kit, twin):
    async def asked(*command):
        return await connections.aclient().call(*command)

    for ask in (connections.client().call, lambda *command: asyncio.run(asked(*command))):
        with pytest.raises(CommandFailed, match="unknown command 'NOSUCH'"):
            ask("NOSUCH")
        assert ask("PING") == b"PONG"


def test_server_that_can_not_read_the_first_line_of_scripts_is_too_old(kit):
    """A blank in front of that line makes each server as old."""
    with pytest.raises(CommandFailed, match=r"Redis 7\.0 or Valkey 7\.2 is the oldest that works"):
        connections.client().call("EVAL", " #!lua\nreturn 1", 0)


def test_throttle_without_the_commands_that_it_needs_answers_by_its_policy(kit, make_server, twin):
    server = make_server(tcp=True, extra_args=("--rename-command", "EVALSHA", ""))
    kit.connect(server.connection)
    assert twin(Throttle("a", rates="1/h").hit, "me")
    assert not twin(Throttle("a", rates="1/h", on_failure="closed").hit, "me")


def test_database_that_the_server_lacks_is_named(kit, make_server, twin):
    server = make_server(tcp=True, extra_args=("--databases", "2"))
    kit.connect({"URL": server.url.replace("/0", "/7")})
    with pytest.raises(CommandFailed, match="DB index is out of range"):
        twin(Queue("q").put, {"number": 1})


def test_server_of_another_protocol_is_unavailable(kit, twin):
    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        kit.connect({"URL": f"redis://127.0.0.1:{listener.getsockname()[1]}"})
        with pytest.raises(RedisUnavailable):
            twin(Queue("q").put, {"number": 1})
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("count", [1, 3])
def test_sentinels_are_named_by_address_and_cause(settings, twin, count):
    ports = [free_port() for _ in range(count)]
    given = {"SENTINELS": [("127.0.0.1", port) for port in ports], "SERVICE": "shop", "PASSWORD": "secret"}
    settings.REDIS_KIT = {"CONNECTIONS": {"default": given}}
    with pytest.raises(RedisUnavailable, match="No master found for 'shop'") as caught:
        twin(Queue("q").put, {"number": 1})
    text = str(caught.value)
    connections.close()
    assert all(
        re.search(f"127.0.0.1:{port} - ConnectionError: .*{port}.*(refused|Connect call failed)", text)
        for port in ports
    )
    assert "<redis" not in text
    assert len(text) < 80 + 200 * count, json.dumps(text)


def test_misspelt_service_is_named_with_the_sentinels(settings, twin, sentinel):
    given = sentinel.connection | {"SERVICE": "shopx"}
    settings.REDIS_KIT = {"CONNECTIONS": {"default": given}}
    with pytest.raises(RedisUnavailable, match=r"No master found for 'shopx'. The .* Is 'SERVICE' right?") as caught:
        twin(Queue("q").put, {"number": 1})
    assert all(f"{host}:{port}" in str(caught.value) for host, port in given["SENTINELS"])


@pytest.mark.parametrize("kind", ["valkey", "debian_redis"])
def test_refusal_in_a_script_for_several_keys_is_one_of_access(request, kit, kind):
    kit.server = request.getfixturevalue(kind)
    with kit.server.client() as admin:
        rules = [f"~{kit.prefix}:*", "+@all", "-zcount"]
        admin.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", *rules)
        kit.connect({**kit.server.connection, "USERNAME": kit.prefix, "PASSWORD": "secret"})
        with pytest.raises(PermissionDenied, match="The component 'locks' uses the keys"):
            held_locks()
        admin.execute_command("ACL", "DELUSER", kit.prefix)
