"""Channels: waits for something that is published, for flows of all components. Nobody polls.

One thread of a process listens to all channels that somebody waits for, on one connection to each server. A server
sends what is published in order, and nothing is lost while the connection lives. After another connection, and once a
channel is subscribed to, its subscribers are told to look for themselves.
"""

import asyncio
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import RedisError, ResponseError

from redis_kit.core import conf, connections
from redis_kit.core.client import error_map, wire
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import PoolExhausted, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow, Step
from redis_kit.core.steps import Sleep
from redis_kit.core.values.numbers import seconds

AT_ONCE = 8  # steps of one event loop at a time
TIMEOUT = (0.0, 3600.0)
LONGEST = 30.0  # seconds without a publication after which a caller looks all the same
PASSING = (RedisUnavailable, PoolExhausted)  # failures that may pass
MOST = 256  # publications that wait for a caller; with one more it is told to look for itself
PING = 1.0  # seconds of silence after which the server is asked whether it still is there
MAX_PAUSE = 1.0  # seconds between two tries to connect
LINGER = 10.0  # seconds without a channel after which the thread ends
LOST = (RedisError, OSError, RedisFailure)
logger = logging.getLogger("redis_kit")
_turns: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


def until_found(
    using: str,
    channel: str,
    look: Callable[[], Flow[Any]],
    timeout: float,
    follow: Callable[[Any, list[bytes]], Any] = lambda result, publications: None,
) -> Flow[Any]:
    """Look, and again after each publication on a channel, until there are ``messages`` or the time is over.

    The result of a look may have ``next_look``: seconds until another one makes sense without a publication.
    ``follow`` may return the next result from the last one and what was published since, and so save a look.
    ``timeout`` is 0 to 3,600. A failure that may pass is raised at the first look, or at the end.
    """
    deadline, failures = monotonic() + seconds("timeout", timeout, TIMEOUT), 0
    result = yield from look()
    if result.messages or not timeout:
        return result
    publications: list[bytes] | None = None
    with subscribed(using, channel) as subscription:
        while not result.messages and (left := deadline - monotonic()) > 0:
            try:
                if not failures:
                    publications = yield Listen(subscription, min(left, getattr(result, "next_look", LONGEST)))
                result = (publications and follow(result, publications)) or (yield from in_turn(look()))
                failures = 0
            except PASSING:
                publications = None
                pause = full_jitter(failures, first=0.1, longest=1.0)
                failures += 1
                if monotonic() + pause > deadline:
                    raise
                yield Sleep(pause)
    return result


def in_turn(steps: Flow[Any]) -> Flow[Any]:
    """Carry out a flow beside a few others of its event loop, so that thousands of tasks use few connections."""
    try:
        step = steps.send(None)
        while True:
            try:
                reply = yield _InTurn(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as stop:
        return stop.value


class _InTurn:
    """A step that waits for its turn in an event loop. Threads are few."""

    __slots__ = ("step",)

    def __init__(self, step: Step) -> None:
        self.step = step

    def run(self, client: Any) -> Any:
        return self.step.run(client)

    async def arun(self, client: Any) -> Any:
        async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
            return await self.step.arun(client)


class Subscription:
    """The publications on a channel for one caller: a thread, or a task of the loop that made it."""

    def __init__(self, using: str, channel: str) -> None:
        self.using, self.channel = using, channel
        self.error: Exception | None = None
        self.loop: Any = None
        with suppress(RuntimeError):
            self.loop = asyncio.get_running_loop()
        self._publications: deque[bytes] = deque()
        self._must_look = False
        self._event: Any = threading.Event() if self.loop is None else asyncio.Event()

    def put(self, publication: bytes | None) -> None:
        """Take a publication, or the order to look. To be followed by wake()."""
        if publication is None or len(self._publications) >= MOST:
            self._must_look = True
        else:
            self._publications.append(publication)

    def wake(self) -> None:
        """Wake the caller. To be called in its loop, if it has one."""
        self._event.set()

    def take(self) -> list[bytes] | None:
        """Return the publications since the last call; None if the caller has to look. Raises what ended it."""
        self._event.clear()  # before the look at the rest: what comes after it sets the event again
        if self.error:
            raise self.error
        must_look, self._must_look = self._must_look, False
        publications = [self._publications.popleft() for _ in range(len(self._publications))]
        return None if must_look else publications

    def wait(self, seconds: float) -> None:
        """Return when there is something to take, or after some seconds."""
        if self.loop:  # sync code in a thread whose loop runs, and can't wake it
            self._event = threading.Event()
            self.loop = None
            self._must_look = True
            return
        self._event.wait(seconds)

    async def await_(self, seconds: float) -> None:
        """See wait()."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()


class Listen:
    """A step: wait for a publication for at most some seconds, and return what take() does.

    It subscribes again if the thread that did so has ended.
    """

    __slots__ = ("seconds", "subscription")

    def __init__(self, subscription: Subscription, seconds: float) -> None:
        self.subscription, self.seconds = subscription, seconds

    def run(self, client: Any) -> list[bytes] | None:
        """Wait in this thread."""
        _listener(self.subscription.using).renew(self.subscription)
        self.subscription.wait(self.seconds)
        return self.subscription.take()

    async def arun(self, client: Any) -> list[bytes] | None:
        """Wait in this task."""
        _listener(self.subscription.using).renew(self.subscription)
        await self.subscription.await_(self.seconds)
        return self.subscription.take()


class _Session:
    """A connection to one server, the commands without a reply yet, and its channels."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.connection = client.dedicated()
        self.connection.connect()
        self.pending: deque[tuple[str, str]] = deque()
        self.channels: set[str] = set()
        self.heard = self.asked = monotonic()

    def send(self, command: str, channel: str = "") -> None:
        """Send a command. Its reply comes among the messages."""
        self.connection.send_command(*([command, channel] if channel else [command]), check_health=False)
        self.pending.append((command, channel))

    def read(self) -> Iterable[Any]:
        """Yield what has come: messages, replies, and errors in place of replies."""
        while self.connection.can_read(timeout=0):
            self.heard = monotonic()
            try:
                yield self.connection.read_response(disconnect_on_error=False)
            except ResponseError as error:
                yield error

    def check(self) -> None:
        """Send a PING after a silence. Raises TimeoutError if there was no answer to the last one."""
        now = monotonic()
        if now - self.heard < PING or now - self.asked < PING:
            return
        if ("PING", "") in self.pending:
            raise TimeoutError("no answer to PING")
        self.asked = now
        self.send("PING")


class _Listener:
    """The channels of one connection alias, with their subscribers."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.is_closed = False
        self._lock = threading.Lock()
        self._subscribers: dict[str, set[Subscription]] = {}
        self._live: set[str] = set()  # channels that a server has confirmed, and whose publications come
        self._news: deque[str] = deque()  # channels that came or went
        self._sessions: dict[Any, _Session] = {}
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._thread: threading.Thread | None = None

    def renew(self, subscription: Subscription) -> None:
        """Subscribe, unless the thread that did so still runs.

        The subscription is told to look when the server has confirmed it, or if it had before.
        """
        runs = self._thread is not None and not self.is_closed
        if runs and subscription in self._subscribers.get(subscription.channel, ()):
            return
        with self._lock:
            if self._thread is None:
                self._live.clear()
            self._subscribers.setdefault(subscription.channel, set()).add(subscription)
            if subscription.channel in self._live:
                subscription.put(None)
                subscription.wake()
            else:
                self._tell(subscription.channel)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="redis_kit listener", daemon=True)
                thread.start()  # it may be refused: then there is none, and the next caller tries again
                self._thread = thread

    def remove(self, subscription: Subscription) -> None:
        """End a subscription."""
        with self._lock:
            subscribers = self._subscribers.get(subscription.channel, set())
            subscribers.discard(subscription)
            if not subscribers:
                self._subscribers.pop(subscription.channel, None)
                self._tell(subscription.channel)

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self.is_closed = True
            self._tell("")
            if self._thread is None:
                self.forget()

    def forget(self) -> None:
        """Close all sockets in this process only. A child that kept them would keep them open for a dead parent."""
        for session in self._sessions.values():
            session.connection.disconnect()
        self._reader.close()
        self._writer.close()

    def _tell(self, channel: str) -> None:
        self._news.append(channel)
        with suppress(OSError):  # the thread is awake, or has ended
            self._writer.send(b"!")

    def _run(self) -> None:
        sessions = self._sessions = {}
        try:
            self._listen(sessions)
        except Exception:
            logger.exception("The listener failed; the next caller that waits starts another one.")
            with self._lock:
                self._thread = None
        finally:
            for session in sessions.values():
                session.connection.disconnect()
            if self.is_closed:
                self.forget()

    def _listen(self, sessions: dict[Any, _Session]) -> None:
        homeless: set[str] = set(self._subscribers)
        moved, failures, retry, used = False, 0, 0.0, monotonic()
        while not self.is_closed:
            while self._news:
                channel = self._news.popleft()
                homeless |= self._change(channel, sessions)
            if homeless and monotonic() >= retry:
                try:
                    client = connections.client(self.using, "worker")
                    self._place(client, homeless, sessions, moved=moved)
                    moved, failures = False, 0
                except LOST as error:
                    retry = monotonic() + full_jitter(failures, first=0.05, longest=MAX_PAUSE)
                    failures += 1
                    self._report(homeless, error_map.translate(error, sent=False))
            wire.await_news([session.connection for session in sessions.values()], self._reader, PING / 4)
            with suppress(BlockingIOError):
                self._reader.recv(65536)
            for client, session in list(sessions.items()):
                try:
                    for reply in session.read():
                        if lost := self._handle(session, reply):
                            homeless.add(lost)
                            moved, retry = True, monotonic() + 0.1
                    session.check()
                except LOST:
                    session.connection.disconnect()
                    homeless |= sessions.pop(client).channels
                    self._live -= session.channels
            if self._subscribers:
                used = monotonic()
            elif monotonic() - used > LINGER:
                with self._lock:
                    if not self._subscribers and not self._news:
                        self._thread = None
                        return

    def _change(self, channel: str, sessions: dict[Any, _Session]) -> set[str]:
        """Unsubscribe from a channel that nobody waits for, or return it if it needs a session."""
        session = next((session for session in sessions.values() if channel in session.channels), None)
        with self._lock:  # a subscriber who comes now sees that the channel is not live, and tells of it again
            is_wanted = channel in self._subscribers
            if not is_wanted:
                self._live.discard(channel)
        if session and not is_wanted:
            session.channels.discard(channel)
            with suppress(*LOST):  # the next look at the session finds out
                session.send("SUNSUBSCRIBE", channel)
        return {channel} if is_wanted and not session else set()

    def _place(self, client: Any, homeless: set[str], sessions: dict[Any, _Session], *, moved: bool) -> None:
        """Subscribe to channels at the servers that have them."""
        homeless.intersection_update(self._subscribers)
        for channel in sorted(homeless):
            node = client.node_of(channel, moved=moved)
            if node not in sessions:
                sessions[node] = _Session(node)
            sessions[node].send("SSUBSCRIBE", channel)
            sessions[node].channels.add(channel)
            homeless.discard(channel)
            moved = False

    def _handle(self, session: _Session, reply: Any) -> str:
        """Deliver a message or note a reply. Returns a channel that this server does not have any more."""
        kind = reply[0] if isinstance(reply, list) else b""
        if kind == b"smessage":
            self._deliver(reply[1].decode(), reply[2])
            return ""
        command, channel = session.pending[0] if session.pending else ("", "")
        if kind == b"sunsubscribe" and (command, channel) != ("SUNSUBSCRIBE", reply[1].decode()):
            return self._dropped(session, reply[1].decode())  # its slot has moved
        session.pending.popleft()
        if command == "SSUBSCRIBE" and kind == b"ssubscribe":
            if channel in session.channels:  # else a SUNSUBSCRIBE is on its way
                self._live.add(channel)
            self._deliver(channel, None)
        elif isinstance(reply, Exception):
            self._dropped(session, channel)
            error = session.client.translated(reply, sent=True)
            if isinstance(error, error_map.REDIRECTED):
                return channel
            self._report([channel], error)
        return ""

    def _dropped(self, session: _Session, channel: str) -> str:
        session.channels.discard(channel)
        self._live.discard(channel)
        return channel

    def _report(self, channels: Iterable[str], error: Exception) -> None:
        """Tell subscribers about an error that does not pass by itself."""
        if not isinstance(error, RedisUnavailable):
            for channel in channels:
                for subscription in list(self._subscribers.get(channel, ())):
                    subscription.error = error
                self._deliver(channel, None)

    def _deliver(self, channel: str, publication: bytes | None) -> None:
        """Give a publication to all subscribers of a channel; None tells them to look for themselves."""
        by_loop: dict[Any, list[Subscription]] = {}
        with self._lock:
            for subscription in self._subscribers.get(channel, ()):
                subscription.put(publication)
                by_loop.setdefault(subscription.loop, []).append(subscription)
        for loop, subscriptions in by_loop.items():
            if loop is None:
                for subscription in subscriptions:
                    subscription.wake()
            else:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_wake_all, subscriptions)


_lock = threading.Lock()
_listeners: dict[str, _Listener] = {}


@contextmanager
def subscribed(using: str, channel: str) -> Iterator[Subscription]:
    """Subscribe to a channel for a block. Its caller is told to look as soon as the server has confirmed it."""
    subscription = Subscription(using, channel)
    try:
        _listener(using).renew(subscription)
        yield subscription
    finally:
        _listener(using).remove(subscription)


def close() -> None:
    """End all listeners. Callers that wait subscribe again."""
    while _listeners:
        _listeners.popitem()[1].close()


def _listener(using: str) -> _Listener:
    with _lock:
        if using not in _listeners:
            _listeners[using] = _Listener(using)
        return _listeners[using]


def _wake_all(subscriptions: Iterable[Subscription]) -> None:
    for subscription in subscriptions:
        subscription.wake()


def _forget_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    while _listeners:
        _listeners.popitem()[1].forget()


os.register_at_fork(after_in_child=_forget_after_fork)
conf.on_change(close, "REDIS_KIT", "CACHES")
