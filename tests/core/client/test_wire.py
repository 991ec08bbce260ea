"""What ``redis_kit/core/client/wire.py`` relies on inside redis-py. A failure names what a new version has changed."""

import asyncio
import inspect
import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest
import redis
from redis.asyncio.connection import Connection as AsyncConnection
from redis.connection import Connection

from redis_kit.core import connections
from redis_kit.core.client import wire
from redis_kit.core.client.wire import packed
from redis_kit.core.errors import CommandFailed
from redis_kit.locks import Lock
from tests.fixtures.servers import wait_for

CHANGED = f"redis-py {redis.__version__} has changed what redis_kit/core/client/wire.py relies on:"


def missing(found, *names):
    return [f"{type(found).__name__}.{name}" for name in names if not hasattr(found, name)]


@pytest.fixture
def connection(kit):
    found = redis.Redis.from_url(kit.url, protocol=2).connection_pool.make_connection()
    yield found
    found.disconnect()


def asynchronously(kit, check):
    async def checked():
        found = redis.asyncio.Redis.from_url(kit.url, protocol=2).connection_pool.make_connection()
        try:
            await check(found)
        finally:
            wire.abort_async(found)

    asyncio.run(checked())


def test_connection_has_the_private_parts_that_are_used(connection):
    gone = missing(connection, "_sock", "_parser", "_connect")
    assert not gone, f"{CHANGED} {gone}"
    assert connection._sock is None, f"{CHANGED} a new connection has a socket"
    connection.connect()
    assert isinstance(connection._sock, socket.socket), f"{CHANGED} _sock is {connection._sock!r}"
    connection.disconnect()
    assert connection._sock is None, f"{CHANGED} a closed connection has a socket"


def test_parser_is_one_that_can_be_fed(connection):
    connection.connect()
    name = type(connection._parser).__name__
    assert name in wire._BUFFERS, f"{CHANGED} the parser is {name}, so no short reply is read without it"
    inner = ("_reader",) if name == "_HiredisParser" else ("_buffer",)
    gone = missing(connection._parser, *inner)
    assert not gone, f"{CHANGED} {gone}"
    if inner == ("_buffer",):
        gone = missing(connection._parser._buffer, "_buffer")
        assert not gone, f"{CHANGED} {gone}"


def test_asynchronous_connection_has_the_private_parts_that_are_used(kit):
    async def check(connection):
        gone = missing(connection, "_reader", "_writer", "_parser", "_connect")
        assert not gone, f"{CHANGED} {gone}"
        assert connection._writer is None, f"{CHANGED} a new connection has a stream"
        assert inspect.iscoroutinefunction(connection._connect), f"{CHANGED} _connect() is no coroutine function"
        await connection.connect()
        gone = missing(connection._reader, "_buffer", "at_eof")
        gone += missing(connection._writer, "transport", "is_closing", "drain", "get_extra_info")
        gone += missing(connection._parser, "on_disconnect")
        assert not gone, f"{CHANGED} {gone}"

    asynchronously(kit, check)


@pytest.mark.parametrize("kind", [Connection, AsyncConnection])
def test_reply_is_read_without_closing_the_connection_on_an_error(kind):
    assert "disconnect_on_error" in inspect.signature(kind.read_response).parameters, CHANGED


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (("ECHO", "x"), b"x"),
        (("ECHO", ""), b""),
        (("ECHO", "a\r\nb"), b"a\r\nb"),
        (("ECHO", "x" * 200_000), b"x" * 200_000),
        (("STRLEN", "nothing"), 0),
        (("PING",), b"PONG"),
        (("GET", "nothing"), None),
        (("MGET", "a", "b"), [None, None]),
    ],
    ids=["short", "empty", "two lines", "long", "number", "status", "none", "array"],
)
def test_replies_of_all_kinds_are_read(connection, command, reply):
    connection.connect()
    for _ in range(2):  # the second one finds nothing left of the first
        assert wire.exchange(connection, packed(command)) == reply
    assert wire.is_usable(connection)


def test_error_reply_leaves_the_connection_usable(connection):
    connection.connect()
    with pytest.raises(redis.ResponseError):
        wire.exchange(connection, packed(("NO", "SUCH")))
    assert wire.exchange(connection, packed(("ECHO", "x"))) == b"x"


def test_connection_that_is_closed_or_has_a_late_reply_is_not_usable(connection):
    assert not wire.is_usable(connection)
    assert not wire.is_open(connection)
    connection.connect()
    assert wire.is_open(connection)
    assert wire.is_usable(connection)
    connection.send_command("ECHO", "late")
    assert select.select([connection._sock], [], [], 5)[0]
    assert not wire.is_usable(connection)
    wire.read(connection)
    assert wire.is_usable(connection)
    connection._sock.shutdown(socket.SHUT_RDWR)
    assert not wire.is_usable(connection)
    assert wire.is_open(connection)


@pytest.mark.parametrize("answer", [b"", b"*2\r\n$3\r\nabc\r\n"], ids=["none", "half of one"])
def test_silence_ends_at_the_time_limit(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Connection("127.0.0.1", server.getsockname()[1], socket_timeout=0.2, protocol=2)
        found._sock = socket.create_connection(server.getsockname())
        found._sock.settimeout(0.2)
        found._parser.on_connect(found)
        peer, _ = server.accept()
        with peer:
            peer.sendall(answer)
            with pytest.raises((TimeoutError, redis.TimeoutError)):
                wire.exchange(found, packed(("MGET", "a", "b")))
        found.disconnect()


def test_command_that_the_kernel_has_no_room_for_is_sent_whole(connection):
    connection.connect()
    connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    text = "x" * 20_000_000
    assert wire.exchange(connection, packed(("STRLEN", text))) == 0
    assert wire.exchange(connection, packed(("ECHO", "after"))) == b"after"


def test_signals_do_not_prolong_a_wait():
    own, peer = socket.socketpair()
    found = Connection("127.0.0.1", 1, protocol=2)
    found._sock = own
    found._parser.on_connect(found)
    own.settimeout(0.3)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with peer, own, pytest.raises(TimeoutError):
            wire.exchange(found, packed(("ECHO", "x")))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_may_look_at_one_connection_at_a_time(connection):
    connection.connect()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: wire._has_news(connection._sock, 0.02), range(8))) == [False] * 8


def test_async_connection_that_is_closed_or_has_a_late_reply_is_not_usable(kit):
    async def check(connection):
        assert not wire.is_open_async(connection)
        assert not wire.is_usable_async(connection)
        await wire.open_async(connection, connect=1, read=1)
        assert wire.is_open_async(connection)
        assert wire.is_usable_async(connection)
        await wire.asend(connection, packed(("ECHO", "late")))
        await asyncio.sleep(0.05)
        assert not wire.is_usable_async(connection)
        assert await connection.read_response() == b"late"
        assert wire.is_usable_async(connection)
        wire.abort_async(connection)
        assert not wire.is_open_async(connection)
        assert not wire.is_usable_async(connection)

    asynchronously(kit, check)


class Without:
    """Something without one of its parts, or without a part of that part: ``_parser._buffer``."""

    def __init__(self, inner, part):
        object.__setattr__(self, "_kept", inner)
        object.__setattr__(self, "_lost", part.partition("."))

    def __getattr__(self, name):
        part, _, inner_part = self._lost
        if name == part and not inner_part:
            raise AttributeError(f"no {name}", name=name)
        value = getattr(self._kept, name)
        return without(value, inner_part) if name == part else value

    def __setattr__(self, name, value):
        assert self._lost != (name, "", ""), f"{name} was set, which is not there"
        setattr(self._kept, name, value)

    def __delattr__(self, name):
        delattr(self._kept, name)


def without(inner, part):
    """Return something that behaves as before, under its own name, but lacks a part."""
    return type(type(inner).__name__, (Without,), {})(inner, part)


def lacking(client, part):
    """Let all connections of a client lack a private part, which the library itself still has."""
    pool = client._pool
    make = pool.factory.make
    pool.factory = pool.factory._replace(make=lambda: without(make(), part))
    return client


@pytest.fixture
def logged(caplog, monkeypatch):
    """A function that tells whether one line of the log names a part."""
    monkeypatch.setattr(wire, "_missing", set())
    return lambda part: [part.rpartition(".")[2] in line for line in caplog.messages] == [True]


LONG = "x" * 200_000


NEWEST = pytest.mark.skipif(not hasattr(AsyncConnection, "can_read"), reason="older releases have all private parts")
BUFFERS = ["_parser._reader"] if find_spec("hiredis") else ["_parser._buffer", "_parser._buffer._buffer"]


@NEWEST
@pytest.mark.parametrize("part", ["_sock", "_parser", *BUFFERS])
def test_library_without_a_private_part_is_used_all_the_same(kit, logged, part):
    client = lacking(connections.client(), part)
    assert client.call("ECHO", "a") == b"a"
    assert client.call("ECHO", LONG) == LONG.encode()
    assert client.batch([("PING",), ("MGET", "a", "b")]) == [b"PONG", [None, None]]
    assert client.block(0.01, "BLPOP", "nothing", "0.01") is None
    with pytest.raises(CommandFailed):
        client.call("NO", "SUCH")
    (connection,) = client._pool._idle
    connection.send_command("ECHO", "unread")
    wait_for(lambda: wire._has_news(connection._kept._sock))
    assert client.call("ECHO", "b") == b"b"
    kit.client.client_kill_filter(_id=client.call("CLIENT", "ID"))
    assert client.call("ECHO", "c") == b"c"
    lease = Lock("a").acquire()
    assert Lock("a").acquire(blocking_timeout=0.05) is None
    lease.release()
    assert logged(part)


@NEWEST
@pytest.mark.parametrize("part", ["_writer", "_reader", "_reader._buffer", "_parser", "_connect"])
def test_async_library_without_a_private_part_is_used_all_the_same(kit, logged, part):
    async def main():
        client = lacking(connections.aclient(), part)
        assert await client.call("ECHO", "a") == b"a"
        assert await client.call("ECHO", LONG) == LONG.encode()
        assert await client.batch([("PING",), ("MGET", "a", "b")]) == [b"PONG", [None, None]]
        assert await client.block(0.01, "BLPOP", "nothing", "0.01") is None
        with pytest.raises(CommandFailed):
            await client.call("NO", "SUCH")
        (connection,) = client._pool._idle
        await connection.send_command("ECHO", "unread")
        wait_for(lambda: wire._has_news(connection._kept._writer.get_extra_info("socket")))
        assert await client.call("ECHO", "b") == b"b"
        kit.client.client_kill_filter(_id=await client.call("CLIENT", "ID"))
        assert await client.call("ECHO", "c") == b"c"
        lease = await Lock("a").aacquire()
        assert await Lock("a").aacquire(blocking_timeout=0.05) is None
        await lease.arelease()

    asyncio.run(main())
    assert logged(part)


def test_no_step_of_connecting_takes_longer_than_its_limit(kit):
    async def check(connection):
        async def forever():
            await asyncio.sleep(60)

        connection._connect = forever
        with pytest.raises((TimeoutError, redis.TimeoutError)):
            await wire.open_async(connection, connect=0.01, read=1)
        connection._connect = None

    asynchronously(kit, check)
