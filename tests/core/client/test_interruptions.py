"""A call that is interrupted at each place at which Python may do that: its connection is not counted for ever."""

import asyncio
import contextlib
import gc
import sys
import threading
import warnings

import pytest

import redis_kit
from redis_kit.core import connections
from redis_kit.core.client import pools
from redis_kit.core.errors import CommandFailed, PoolExhausted
from tests.fixtures.servers import wait_for

KIT = redis_kit.__file__.removesuffix("__init__.py")


@pytest.fixture(autouse=True)
def ignored(monkeypatch):
    """Ignore what Python ignores or warns of: errors in destructors, and sockets that redis-py had just opened."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


class Interrupted(BaseException):
    """Raised at a place of a call."""


class Interruption:
    """Raises an error at one place of a block: where a function begins, or where one of C returned."""

    def __init__(self, at, *, of=lambda frame: True):
        self.left, self._of = at, of

    def __enter__(self):
        gc.disable()  # what a circle of references holds stays
        sys.setprofile(self._look)

    def __exit__(self, kind, error, traceback):
        sys.setprofile(None)
        gc.enable()

    def _look(self, frame, event, arg):
        if event in ("call", "c_return") and frame.f_code.co_filename != __file__ and self._of(frame):
            self.left -= 1
            if not self.left:
                sys.setprofile(None)
                raise Interrupted


def each(of=lambda frame: True, *, least=10):
    """Yield an interruption at the first place, the second, and so on, until a block has no more: ``least`` or more."""
    for at in range(1, 5000):
        interruption = Interruption(at, of=of)
        yield interruption
        if interruption.left > 0:
            assert at > least
            return


def in_use(pool):
    """Return how many connections the pool counts that are not idle, and how many callers stand in line."""
    return len(pool._made) - len(pool._idle), len(pool._waiting) + len(pool._waiting_to_block)


def close_idle(pool):
    while pool._idle:
        pool.drop(pool._idle.pop())


def call(client):
    assert client.call("ECHO", "a") == b"a"


def fail(client):
    with contextlib.suppress(CommandFailed):  # pytest.raises() would keep an interruption
        client.call("NONSENSE")


def block(client):
    assert client.block(0.001, "BLPOP", "nothing", "0.001") is None


def batch(client):
    assert client.batch([("ECHO", "a"), ("ECHO", "b")]) == [b"a", b"b"]


# Each command on a connection that is there; one also on a new one.
KINDS = pytest.mark.parametrize(
    ("command", "fresh"),
    [
        pytest.param(call, True, id="new"),
        *(pytest.param(one, False, id=one.__name__) for one in (call, fail, block, batch)),
    ],
)


@KINDS
def test_call_that_is_interrupted_loses_no_connection(kit, command, fresh):
    client = connections.client()
    pool = client._pool
    command(client)
    for interruption in each():
        if fresh:
            close_idle(pool)
        with contextlib.suppress(Interrupted), interruption:
            command(client)
        assert in_use(pool) == (0, 0)


@KINDS
def test_error_of_an_interruption_that_somebody_keeps_loses_none_either(kit, command, fresh):
    """Workers do not interrupt redis_kit's own code; but what it calls."""
    client, kept = connections.client(), []
    pool = client._pool
    command(client)
    for interruption in each(lambda frame: not frame.f_code.co_filename.startswith(KIT), least=100 if fresh else 0):
        if fresh:
            close_idle(pool)
        try:
            with interruption:
                command(client)
        except Interrupted as error:
            kept.append(error)
        assert in_use(pool) == (0, 0)


def test_connection_whose_closing_is_interrupted_is_not_counted(kit):
    pool, kept = connections.client()._pool, []
    for interruption in each(lambda frame: not frame.f_code.co_filename.startswith(KIT), least=9):
        connection = pool.take()
        try:
            with interruption:
                pool.drop(connection)
        except Interrupted as error:
            kept.append(error)
        assert in_use(pool) == (0, 0)


def test_connection_whose_end_is_interrupted_is_not_counted(kit):
    """It was never returned; then nothing refers to it any more. Python ignores an error at that moment."""
    pool = connections.client()._pool
    for interruption in each():
        lost = [pool.take()]
        with interruption:
            lost.clear()
        assert in_use(pool) == (0, 0)


@pytest.mark.usefixtures("single_connection")
def test_caller_that_is_interrupted_while_it_waits_leaves_the_line(kit):
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=0.01)
    pool = connections.client()._pool
    taken = pool.take()
    for interruption in each():
        with contextlib.suppress(Interrupted, PoolExhausted), interruption:
            pool.take()
        assert in_use(pool) == (1, 0)
    pool.give(taken)


@pytest.mark.parametrize("to_block", [False, True])
def test_caller_gets_a_place_that_nobody_told_of_when_its_time_is_over(kit, to_block):
    kit.options(MAX_CONNECTIONS=2, POOL_TIMEOUT=1)
    pool, served = connections.client()._pool, []
    lost = [pool.take(), pool.take()]
    waiting = threading.Thread(target=lambda: served.append(pool.take(to_block=to_block)))
    waiting.start()
    wait_for(lambda: in_use(pool)[1] == 1)
    lost.clear()
    waiting.join(10)
    assert len(served) == 1
    pool.give(served.pop())
    assert in_use(pool) == (0, 0)


@pytest.mark.usefixtures("single_connection")
def test_caller_whose_turn_was_interrupted_gets_its_connection_later(kit):
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=1)
    pool, served = connections.client()._pool, []
    taken = pool.take()
    waiting = threading.Thread(target=lambda: served.append(pool.take()))
    waiting.start()
    wait_for(lambda: in_use(pool)[1] == 1)
    with pytest.raises(Interrupted), Interruption(1, of=lambda frame: frame.f_code.co_filename == pools.__file__):
        pool.give(taken)
    del taken
    waiting.join(10)
    assert len(served) == 1
    pool.give(served.pop())
    assert in_use(pool) == (0, 0)


class Cancelling:
    """Awaits something, and cancels the task when it is about to sleep for the nth time."""

    def __init__(self, work, at):
        self._work, self.left = work, at

    def __await__(self):
        steps, reply, error = self._work.__await__(), None, None
        while True:
            try:
                future = steps.send(reply) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            self.left -= 1
            if not self.left:
                asyncio.current_task().cancel()
            try:
                reply, error = (yield future), None
            except BaseException as raised:
                error = raised


async def acall(client):
    assert await client.call("ECHO", "a") == b"a"


async def afail(client):
    with pytest.raises(CommandFailed):
        await client.call("NONSENSE")


async def ablock(client):
    assert await client.block(0.001, "BLPOP", "nothing", "0.001") is None


async def abatch(client):
    assert await client.batch([("ECHO", "a"), ("ECHO", "b")]) == [b"a", b"b"]


async def awatch(client):
    async def look():
        await asyncio.sleep(0)
        return 0.001

    assert await client.watch(1, 0.001, look, ("BLPOP", "nothing", "0.01"), ("ECHO", "a")) == b"a"


async def astand(client):
    """Wait for the only connection, and get it."""
    taken = await client._pool.take()
    asyncio.get_running_loop().call_later(0.001, client._pool.give, taken)
    await acall(client)


async def arefused(client):
    """Wait for the only connection in vain."""
    taken = await client._pool.take()
    try:
        with pytest.raises(PoolExhausted):
            await client.call("ECHO", "a")
    finally:
        client._pool.give(taken)


ASYNC = [acall, afail, ablock, abatch, awatch, astand, arefused]


@pytest.mark.parametrize("fresh", [True, False], ids=["new", "idle"])
@pytest.mark.parametrize("work", ASYNC, ids=lambda work: work.__name__)
@pytest.mark.usefixtures("single_connection")
def test_task_that_is_cancelled_at_each_await_loses_no_connection(kit, work, fresh):
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=0.05)

    async def main():
        client, kept = connections.aclient(), []
        pool = client._pool
        await work(client)
        for at in range(1, 500):
            if fresh:
                close_idle(pool)
            cancelling = Cancelling(work(client), at)

            async def run(cancelling=cancelling):
                await cancelling

            try:
                await asyncio.create_task(run())
            except asyncio.CancelledError as error:
                kept.append(error)
            await asyncio.sleep(0.002 if work is astand else 0)
            assert in_use(pool) == (0, 0)
            await acall(client)
            if cancelling.left > 0:
                break
        assert len(kept) >= 1

    asyncio.run(main())
