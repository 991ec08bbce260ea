"""Generations of an index: a rebuild fills a new one while adds go to both, and switches to it in one step.

What a generation holds is the business of its index.
"""

import re
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any, NamedTuple

from redis_kit.bloom import keys
from redis_kit.bloom.errors import RebuildLost, RebuildRunning
from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Argument, Call

CHANGE = scripts.load(__package__, "change")
CLEAR = scripts.load(__package__, "clear")
MOST_SHAPES = 1024
_shapes: dict[tuple[str, str], "Shape"] = {}  # by connection and state: what this process knows
conf.on_change(_shapes.clear)


class Generation(NamedTuple):
    """A part of an index that is replaced as a whole. ``layers`` is the number of its layers."""

    id: str
    layers: int

    @classmethod
    def new(cls) -> "Generation":
        """Return a generation with an id that no other has: its keys can't be those of a dead rebuild."""
        return cls(token_hex(8), 1)


class Shape(NamedTuple):
    """The generations that answer, the newest first, and the one that a rebuild fills."""

    active: tuple[Generation, ...] = ()
    shadow: Generation | None = None

    @classmethod
    def parse(cls, text: str) -> "Shape":
        """Return the shape that a server has stored."""
        found = re.findall(r"(\+?)(\w+):(\d+)", text)
        active = tuple(Generation(id, int(layers)) for mark, id, layers in found if not mark)
        shadows = [Generation(id, int(layers)) for mark, id, layers in found if mark]
        return cls(active, shadows[0] if shadows else None)

    def __str__(self) -> str:
        texts = [f"{id}:{layers}" for id, layers in self.active]
        return " ".join([*texts, f"+{self.shadow.id}:{self.shadow.layers}"] if self.shadow else texts)

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Return all generations, in the order of the text."""
        return (*self.active, self.shadow) if self.shadow else self.active

    def grown(self, id: str) -> "Shape":
        """Return the shape in which a generation has one layer more."""
        active = tuple(each._replace(layers=each.layers + (each.id == id)) for each in self.active)
        shadow = self.shadow and self.shadow._replace(layers=self.shadow.layers + (self.shadow.id == id))
        return Shape(active, shadow)


class Generations:
    """The generations of one index. ``bitmaps`` returns the keys of one, each with its size."""

    def __init__(
        self,
        using: str,
        tag: str,
        parameters: str,
        bitmaps: Callable[[Generation], Sequence[tuple[str, int]]],
        *,
        most: int = 1,
        ttl_ms: int = 0,
    ) -> None:
        self.state, self.lease = keys.state(tag), keys.lease(tag)
        self.parameters, self.bitmaps, self.most, self.ttl_ms = parameters, bitmaps, most, ttl_ms
        self._place = (using, self.state)

    @property
    def shape(self) -> Shape:
        """Return the shape that this process knows. A script refuses another one than the stored one."""
        return _shapes.get(self._place, Shape())

    def learn(self, text: str) -> None:
        """Remember the stored shape."""
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        _shapes[self._place] = Shape.parse(text)

    def keys_of(self, shape: Shape) -> list[str]:
        """Return the keys of all generations of a shape, in its order."""
        return [key for generation in shape.generations for key, _ in self.bitmaps(generation)]

    def rotate(self) -> Flow[str]:
        """Begin a generation: the first one, or with a window the next one. The oldest ones end."""
        shape = self.shape
        return (yield from self.change(Shape((Generation.new(), *shape.active)[: self.most], shape.shadow)))

    def grow(self, id: str) -> Flow[str]:
        """Give a generation that is full one layer more."""
        return (yield from self.change(self.shape.grown(id)))

    def forget(self) -> Flow[str]:
        """Drop the generation of a rebuild that died. Does nothing if it lives."""
        return (yield from self.change(Shape(self.shape.active), "forget"))

    def start(self, token: Generation, ttl_ms: int) -> Flow[None]:
        """Begin the generation of a rebuild; that of a dead one is dropped. Raises RebuildRunning."""
        while True:
            reason = yield from self.change(Shape(self.shape.active, token), "start", token.id, ttl_ms)
            if reason == "busy":
                raise RebuildRunning("Another process rebuilds it.")
            if not reason:
                return

    def switch(self, token: str) -> Flow[None]:
        """Let the generation of a rebuild answer in place of all others. Raises RebuildLost if it is not whole."""
        while True:
            shape = self.shape
            self.require(token)
            reason = yield from self.change(Shape((shape.shadow,) if shape.shadow else ()), "switch", token)
            if reason == "lost":
                raise RebuildLost("The server restarted, or an add failed, during the rebuild. Start it again.")
            if not reason:
                return

    def abandon(self, token: str) -> Flow[None]:
        """Drop the generation of a rebuild, if it is still there."""
        while self.shape.shadow and self.shape.shadow.id == token:
            yield from self.change(Shape(self.shape.active), "abandon", token)

    def require(self, token: str) -> None:
        """Raise RebuildLost unless the stored shape has the generation of this rebuild."""
        if not self.shape.shadow or self.shape.shadow.id != token:
            raise RebuildLost("The rebuild took too long and counted as dead, or the filter was cleared.")

    def distrust(self) -> Flow[Any]:
        """Let neither the present generation nor that of a running rebuild count as complete."""
        return (yield Call("HDEL", self.state, "complete", "building"))

    def clear(self) -> Flow[bool]:
        """Delete all generations, and return whether there were any."""
        while True:
            shape = str(self.shape)
            stored = (yield CLEAR([self.state, self.lease, *self.keys_of(self.shape)], [shape])).decode()
            self.learn("" if stored == shape else stored)
            if stored == shape:
                return bool(shape)

    def change(self, new: Shape, step: str = "", token: str = "", ttl_ms: int = 0) -> Flow[str]:
        """Replace the shape and return "", or a reason. If the stored one is another one, it is known afterwards."""
        shape = self.shape
        before = {key: size for generation in shape.generations for key, size in self.bitmaps(generation)}
        after = {key: size for generation in new.generations for key, size in self.bitmaps(generation)}
        going = [key for key in before if key not in after]
        coming = {key: size for key, size in after.items() if key not in before}
        args: list[Argument] = [self.parameters, str(shape), str(new), step, token, ttl_ms, len(going), self.ttl_ms]
        reply = yield CHANGE([self.state, self.lease, *going, *coming], [*args, *coming.values()])
        reason = str(reply[1].decode())
        if not reason:
            self.learn(str(new))
        elif reason == "stale":
            self.learn(reply[3].decode())
        return reason
