"""What ``redis_kit/core/client/wire.py`` relies on inside redis-py. A failure names what a new version has changed."""

import asyncio
import inspect
import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from redis.asyncio.connection import Connection as AsyncConnection
from redis.connection import Connection

from redis_kit.core.client import wire
from redis_kit.core.client.protocol import packed

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
    assert name in wire._FEEDS, f"{CHANGED} the parser is {name}, so no short reply is read without it"
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
        found = Connection("127.0.0.1", server.getsockname()[1], socket_timeout=0.2, driver_info=None, protocol=2)
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
        with wire.limited_steps(connection, connect=1, read=1):
            await connection.connect()
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


def test_no_step_of_connecting_takes_longer_than_its_limit(kit):
    async def check(connection):
        async def forever():
            await asyncio.sleep(60)

        connection._connect = forever
        with pytest.raises(TimeoutError), wire.limited_steps(connection, connect=0.01, read=1):
            await connection._connect()
        connection._connect = None

    asynchronously(kit, check)
