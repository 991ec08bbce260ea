"""Errors inside a call: those of the server and of redis-py, and exceptions that end the caller."""

import asyncio
import gc
import threading
import weakref

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import CommandFailed


class Stopped(BaseException):
    """What somebody raises to end a thread."""


@pytest.fixture(params=[connections.client, connections.aclient], ids=["sync", "async"])
def call(request, kit):
    """Make a call by either client."""

    def made(*command):
        if request.param is connections.client:
            return connections.client().call(*command)

        async def called():
            return await connections.aclient().call(*command)

        return asyncio.run(called())

    return made


def stopped_before_the_reply(connection, command):
    connection.send_packed_command([command])
    raise Stopped


def causes(error):
    """Return an error and its causes; fails where they go in a circle."""
    found = []
    while error is not None:
        assert not any(error is one for one in found), "an error is its own cause"
        found.append(error)
        error = error.__cause__
    return found


@pytest.mark.parametrize("command", [("GET",), ("EVAL", "return redis.error_reply('x')", 0)])
def test_no_error_is_its_own_cause(call, command):
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- of several kinds
        call(*command)
    assert causes(caught.value)
    call("PING")


def refused():
    try:
        return connections.client().call("NONSENSE")
    except CommandFailed as error:
        return weakref.ref(error)


async def arefused():
    try:
        return await connections.aclient().call("NONSENSE")
    except CommandFailed as error:
        return weakref.ref(error)


@pytest.mark.parametrize("refused", [refused, lambda: asyncio.run(arefused())], ids=["sync", "async"])
def test_error_that_nobody_keeps_ends_at_once(kit, refused):
    """Its traceback refers to the frames of the call, and with them to the connection."""
    gc.disable()
    try:
        assert refused()() is None
    finally:
        gc.enable()


def test_end_of_a_thread_is_not_an_error_of_the_server(kit, monkeypatch):
    client, errors = connections.client(), []
    monkeypatch.setattr("redis_kit.core.client.wire.exchange", stopped_before_the_reply)

    def work():
        for _ in range(5):
            try:
                client.call("ECHO", "not read")
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    monkeypatch.undo()
    assert [type(error) for error in errors] == [Stopped] * 5
    assert all(causes(error) == [error] for error in errors)
    assert not client.breaker.failures
    assert not client.breaker.is_open
    assert client.call("ECHO", "mine") == b"mine"
