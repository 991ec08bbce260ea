"""The steps that a flow may yield. Their run() and arun() are the only code written twice."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from redis_kit.core.errors import KeyConflict, RedisFailure, RedisUnavailable

Argument = str | bytes | int | float
Command = Sequence[Argument]


class Call:
    """One command; the reply as the server sent it, text as bytes."""

    __slots__ = ("command",)

    def __init__(self, *command: Argument) -> None:
        self.command = command

    def run(self, client: Any) -> Any:
        """Send it: one round trip."""
        return client.call(*self.command)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        return await client.call(*self.command)


class Batch:
    """Several commands or script calls in one round trip; a list of replies. Not atomic: no one depends on another.

    With ``lenient`` an error that concerns one of them, a RedisFailure other than RedisUnavailable, is its reply.
    """

    __slots__ = ("calls", "lenient")

    def __init__(self, calls: Sequence[Any], *, lenient: bool = False) -> None:
        self.calls, self.lenient = calls, lenient

    def run(self, client: Any) -> list[Any]:
        """Send them. The first error is raised, after all were carried out; one more round trip names a wrong key."""
        replies = client.batch([call.command for call in self.calls])
        missing = [place for place, reply in enumerate(replies) if is_missing_script(reply)]
        if missing:
            again = client.batch([self.calls[place].with_source() for place in missing])
            replies = merged(replies, missing, again)
        if wrong := self._wrong(replies):
            replies = self._named(replies, wrong, client.batch(self._types(wrong)))
        return self.result(replies)

    async def arun(self, client: Any) -> list[Any]:
        """See run()."""
        replies = await client.batch([call.command for call in self.calls])
        missing = [place for place, reply in enumerate(replies) if is_missing_script(reply)]
        if missing:
            again = await client.batch([self.calls[place].with_source() for place in missing])
            replies = merged(replies, missing, again)
        if wrong := self._wrong(replies):
            replies = self._named(replies, wrong, await client.batch(self._types(wrong)))
        return self.result(replies)

    def result(self, replies: list[Any]) -> list[Any]:
        """Return the replies, or raise the first error among them that is not to stay there."""
        return checked(replies, lenient=self.lenient)

    def _wrong(self, replies: list[Any]) -> list[int]:
        """Return the places of scripts' calls that met a wrong key. A plain command's caller knows its one key."""
        found = [place for place, reply in enumerate(replies) if isinstance(reply, KeyConflict)]
        return [place for place in found if hasattr(self.calls[place], "types")]

    def _types(self, places: list[int]) -> list[Command]:
        return [command for place in places for command in self.calls[place].types()]

    def _named(self, replies: list[Any], places: list[int], types: list[Any]) -> list[Any]:
        named, at = [], 0
        for place in places:
            count = len(self.calls[place].types())
            named.append(self.calls[place].named(replies[place], types[at : at + count]))
            at += count
        return merged(replies, places, named)


class TolerantBatch(Batch):
    """A batch whose errors are replies: none is raised but one that concerns all of it."""

    def result(self, replies: list[Any]) -> list[Any]:
        """Return the replies as they are."""
        return replies


class Pop:
    """Wait for an element of a list, for at most ``timeout`` seconds; its bytes, or None. Takes what it returns."""

    __slots__ = ("key", "timeout")

    def __init__(self, key: str, *, timeout: float) -> None:
        self.key, self.timeout = key, max(timeout, 0.001)  # 0 would wait for ever

    def run(self, client: Any) -> bytes | None:
        """Block on the server: one round trip, however long it lasts."""
        found = client.block(self.timeout, "BLPOP", self.key, f"{self.timeout:.3f}")
        return found[1] if found else None

    async def arun(self, client: Any) -> bytes | None:
        """See run()."""
        found = await client.block(self.timeout, "BLPOP", self.key, f"{self.timeout:.3f}")
        return found[1] if found else None


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


def is_missing_script(reply: Any) -> bool:
    """Say whether a reply means that the server does not hold the script of a digest."""
    return isinstance(reply, Exception) and type(reply).__name__ == "NoScriptError"


def merged(replies: list[Any], places: list[int], later: list[Any]) -> list[Any]:
    """Return the replies with those of a second try in their places."""
    found = dict(zip(places, later, strict=True))
    return [found.get(place, reply) for place, reply in enumerate(replies)]


def checked(replies: list[Any], *, lenient: bool = False) -> list[Any]:
    """Return the replies, or raise the first error among them that is not to stay there."""
    for reply in replies:
        stays = lenient and isinstance(reply, RedisFailure) and not isinstance(reply, RedisUnavailable)
        if isinstance(reply, Exception) and not stays:
            raise reply
    return replies
