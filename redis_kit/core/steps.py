"""The steps that a flow may yield. Their ``run()`` and ``arun()`` are the only code that is written twice."""

import asyncio
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from redis_kit.core import flow
from redis_kit.core.errors import KeyConflict, RedisFailure, RedisUnavailable

Argument = str | bytes | int | float
Command = tuple[Argument, ...]


class Call:
    """One command; the reply as the server sent it, text as bytes."""

    __slots__ = ("command",)

    def __init__(self, *command: Argument) -> None:
        self.command = command

    def run(self, client: Any) -> Any:
        """Send the command: one round trip."""
        return client.call(*self.command)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        return await client.call(*self.command)


def writable(key: str) -> Call:
    """Return the step that only a server carries out which would take a write. It does nothing.

    A replica, or a primary without enough replicas, refuses a script that may write, and a node of a Cluster that is
    down refuses the key.
    """
    return Call("EVAL", "#!lua flags=allow-oom\nreturn 1", 1, key)


class Batch:
    """Several commands or calls of scripts in one round trip; a list of replies. Not atomic: none depends on another.

    With ``lenient``, a RedisFailure is the reply of its call, also if some nodes of a Cluster are unavailable. It is
    raised if all calls met an outage.
    """

    __slots__ = ("calls", "lenient")

    def __init__(self, calls: Sequence[Any], *, lenient: bool = False) -> None:
        self.calls, self.lenient = calls, lenient

    def run(self, client: Any) -> list[Any]:
        """Send the calls. The first error is raised after all were carried out. For repeats see ScriptCall.run()."""
        replies = client.batch([call.command for call in self.calls])
        if any(map(needs_repair, replies)):
            replies = flow.run(repaired(self.calls, replies), client)
        return self.result(replies)

    async def arun(self, client: Any) -> list[Any]:
        """See run()."""
        replies = await client.batch([call.command for call in self.calls])
        if any(map(needs_repair, replies)):
            replies = await flow.arun(repaired(self.calls, replies), client)
        return self.result(replies)

    def result(self, replies: list[Any]) -> list[Any]:
        """Return the replies, or raise the first error among them that is not to stay there."""
        lenient = self.lenient and not all(isinstance(reply, RedisUnavailable) for reply in replies)
        for reply in replies:
            if isinstance(reply, Exception) and not (lenient and isinstance(reply, RedisFailure)):
                _note_others(reply, replies)
                raise reply
        return replies


class TolerantBatch(Batch):
    """A batch whose errors are replies: none is raised but one that concerns all of it."""

    def result(self, replies: list[Any]) -> list[Any]:
        """Return the replies as they are."""
        return replies


class Spread:
    """Calls for the keys of several slots, or one in place of all, which a Cluster refuses. The replies are a list."""

    __slots__ = ("parts", "whole")

    def __init__(self, whole: Any, parts: Sequence[Any]) -> None:
        self.whole, self.parts = whole, parts

    def run(self, client: Any) -> list[Any]:
        """Send the one call, or all in a batch: one round trip."""
        return Batch(self.parts).run(client) if client.is_cluster else [self.whole.run(client)]

    async def arun(self, client: Any) -> list[Any]:
        """See run()."""
        return await Batch(self.parts).arun(client) if client.is_cluster else [await self.whole.arun(client)]


class Pop:
    """Wait for an element of a list, for at most ``timeout`` seconds, and remove it; its bytes, or None."""

    __slots__ = ("key", "timeout")

    def __init__(self, key: str, *, timeout: float) -> None:
        self.key, self.timeout = key, max(timeout, 0.001)  # 0 would wait without a limit

    def run(self, client: Any) -> bytes | None:
        """Block on the server: one round trip, however long it lasts."""
        popped = client.block(self.timeout, "BLPOP", self.key, f"{self.timeout:.3f}")
        return popped[1] if popped else None

    async def arun(self, client: Any) -> bytes | None:
        """See run()."""
        popped = await client.block(self.timeout, "BLPOP", self.key, f"{self.timeout:.3f}")
        return popped[1] if popped else None


class Sleep:
    """Do nothing for some seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, client: Any) -> None:
        """Sleep in this thread."""
        time.sleep(self.seconds)

    async def arun(self, client: Any) -> None:
        """Sleep in this task."""
        await asyncio.sleep(self.seconds)


def repeated(step: flow.Step) -> flow.Flow[Any]:
    """Carry out a step whose repeat gets the same answer, and once more if its reply is lost."""
    try:
        return (yield step)
    except RedisUnavailable as error:
        if not error.indeterminate:
            raise
        lost = error
    try:
        return (yield step)
    except RedisUnavailable:
        raise lost from None  # the first one may have been carried out, whatever became of the second


def needs_repair(reply: Any) -> bool:
    """Tell whether a reply is an error that repaired() can do something about."""
    return isinstance(reply, Exception) and (isinstance(reply, KeyConflict) or _is_missing_script(reply))


def repaired(calls: Sequence[Any], replies: list[Any]) -> flow.Flow[list[Any]]:
    """Send the calls whose script the server has lost again, with their source, and name keys of a wrong type.

    Returns all replies, the new ones in place of the errors. One round trip for each of the two.
    """
    lost = [place for place, reply in enumerate(replies) if _is_missing_script(reply)]
    if lost:
        later = yield from _sent([calls[place].with_source() for place in lost], replies)
        replies = _replaced(replies, lost, later)
    # A plain command has one key, which its caller knows.
    wrong = [place for place, reply in enumerate(replies) if isinstance(reply, KeyConflict)]
    wrong = [place for place in wrong if hasattr(calls[place], "types")]
    if wrong:
        asked = [calls[place].types() for place in wrong]
        types = iter((yield from _sent([command for commands in asked for command in commands], replies)))
        named = []
        for place, commands in zip(wrong, asked, strict=True):
            error = replies[place]
            conflict = calls[place].named(error, list(islice(types, len(commands))))
            if conflict is not error:
                conflict.__cause__ = error
            named.append(conflict)
        replies = _replaced(replies, wrong, named)
    return replies


class _Send:
    """A step: several commands in one round trip, and their replies as they are, errors among them."""

    __slots__ = ("commands",)

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands

    def run(self, client: Any) -> Any:
        return client.batch(self.commands)

    async def arun(self, client: Any) -> Any:
        return await client.batch(self.commands)


def _sent(commands: Sequence[Command], replies: Sequence[Any]) -> flow.Flow[list[Any]]:
    """Send commands after those of a batch, whose replies are given."""
    try:
        answers: list[Any] = yield _Send(commands)
    except RedisUnavailable as error:
        _note_others(error, replies)
        raise
    return answers


def _note_others(error: Exception, replies: Sequence[Any]) -> None:
    """Mark an outage as indeterminate if other calls of the batch were or may have been carried out.

    A repeat would repeat these.
    """
    if isinstance(error, RedisUnavailable):
        error.indeterminate |= any(
            not isinstance(reply, Exception) or getattr(reply, "indeterminate", False) for reply in replies
        )


def _is_missing_script(reply: Any) -> bool:
    return isinstance(reply, Exception) and type(reply).__name__ == "NoScriptError"


def _replaced(replies: list[Any], places: list[int], later: list[Any]) -> list[Any]:
    newer = dict(zip(places, later, strict=True))
    return [newer.get(place, reply) for place, reply in enumerate(replies)]
