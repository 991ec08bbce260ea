"""Generations of an index: a rebuild fills a new one while adds go to both, and switches to it in one step.

The keys of a generation, and what they hold, are the business of its index.
"""

import re
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import NamedTuple, Protocol, Self

from redis_kit.core import conf, scripts
from redis_kit.core.errors import ParameterMismatch, RebuildLost, RebuildRunning
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Argument, Call

CHANGE = scripts.load(__package__, "change")
CLEAR = scripts.load(__package__, "clear")
LEASE_MS = 60_000  # after its last batch of values a rebuild counts as dead
MOST_SHAPES = 1024
_shapes: dict[tuple[str, str], "Shape"] = {}  # by connection and state: what this process has seen
conf.on_change(_shapes.clear)


class Generation(NamedTuple):
    """A part of an index that is replaced as a whole. Its id is new, so no key is that of a dead rebuild."""

    id: str
    layers: int = 1

    @classmethod
    def new(cls) -> "Generation":
        """Return a generation with an id of its own."""
        return cls(token_hex(8))


class Shape(NamedTuple):
    """The generations that answer, the newest first, and the one that a rebuild fills."""

    active: tuple[Generation, ...] = ()
    shadow: Generation | None = None

    @classmethod
    def parse(cls, text: str) -> "Shape":
        """Return the shape that a server has stored."""
        generations = {True: list[Generation](), False: list[Generation]()}
        for mark, id, layers in re.findall(r"(\+?)(\w+):(\d+)", text):
            generations[bool(mark)].append(Generation(id, int(layers)))
        return cls(tuple(generations[False]), *generations[True])

    def __str__(self) -> str:
        texts = [f"{id}:{layers}" for id, layers in self.active]
        return " ".join([*texts, f"+{self.shadow.id}:{self.shadow.layers}"] if self.shadow else texts)

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Return all generations, in the order of the text."""
        return (*self.active, self.shadow) if self.shadow else self.active

    def grown(self, id: str) -> "Shape":
        """Return the shape in which a generation has one layer more."""
        return Shape.parse(
            " ".join(
                f"{'+' * (each is self.shadow)}{each.id}:{each.layers + (each.id == id)}" for each in self.generations
            )
        )


def names(component: str) -> str:
    """Return the sorted set of the names of all indexes of a component."""
    return f"{conf.section(KitSettings).PREFIX}:{{{component}:indexes}}:names"


class Parameters(Protocol):
    """The parameters that are stored with an index, as their text. All processes must have the same."""

    @property
    def described(self) -> str:
        """Return them in words."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the stored ones."""


class Generations:
    """The generations of one index. ``keys`` returns those of one, each with the bits to allocate, or 0."""

    def __init__(
        self, index: Primitive, parameters: Parameters, keys: Callable[[Generation], Mapping[str, int]], ttl_ms: int = 0
    ) -> None:
        self.index, self.parameters, self.keys, self.ttl_ms = index, parameters, keys, ttl_ms
        self.state, self.lease = index.key("state"), index.key("lease")
        self._place = (index.using, self.state)

    @property
    def shape(self) -> Shape:
        """Return the shape that this process has seen. A script refuses another one than the stored one."""
        return _shapes.get(self._place, Shape())

    def learn(self, parameters: bytes | None, shape: bytes | None) -> None:
        """Remember the stored shape. Raises ParameterMismatch for other parameters than those of the code."""
        if parameters and parameters.decode() != str(self.parameters):
            stored = self.parameters.parse(parameters.decode())
            raise ParameterMismatch(
                f"{self.index!r} is stored with {stored.described}, and the code has {self.parameters.described}. "
                "Use one of the two; clear() deletes what is stored."
            )
        self._remember(Shape.parse((shape or b"").decode()))

    def all_keys(self) -> list[str]:
        """Return the keys of all generations, in the order of the shape."""
        return list(self._keys_of(self.shape))

    def rotate(self, most: int = 1) -> Flow[str]:
        """Begin a generation, the first one or the next one of a window, and end those beyond ``most``."""
        shape = self.shape
        if not shape.active:
            yield Call("ZADD", names(self.index.component), 0, self.index.name)
        return (yield from self._change(Shape((Generation.new(), *shape.active)[:most], shape.shadow)))

    def grow(self, id: str) -> Flow[str]:
        """Give a generation that is full one layer more."""
        return (yield from self._change(self.shape.grown(id)))

    def forget(self) -> Flow[str]:
        """Drop the generation of a rebuild that died. Does nothing if it lives."""
        return (yield from self._change(Shape(self.shape.active), "forget"))

    def start(self) -> Flow[str]:
        """Begin the generation of a rebuild, drop that of a dead one, and return its id. Raises RebuildRunning."""
        shadow = Generation.new()
        yield Call("ZADD", names(self.index.component), 0, self.index.name)
        while reason := (yield from self._change(Shape(self.shape.active, shadow), "start", shadow.id)):
            if reason == "busy":
                raise RebuildRunning(f"Another process rebuilds {self.index!r}. Wait for its end.")
        return shadow.id

    def switch(self, token: str) -> Flow[None]:
        """Let the generation of a rebuild answer in place of all others. Raises RebuildLost if it is not whole."""
        reason = "stale"
        while reason:
            self.require(token)
            reason = yield from self._change(Shape(self.shape.generations[-1:]), "switch", token)
            if reason == "lost":
                raise RebuildLost("The server restarted, or an add failed, during the rebuild. Start it again.")

    def abandon(self, token: str) -> Flow[None]:
        """Drop the generation of a rebuild, if it is still there."""
        while self.shape.shadow and self.shape.shadow.id == token:
            yield from self._change(Shape(self.shape.active), "abandon", token)

    def require(self, token: str) -> None:
        """Raise RebuildLost unless the shape has the generation of this rebuild."""
        if not self.shape.shadow or self.shape.shadow.id != token:
            raise RebuildLost("The rebuild paused for too long, or the index was cleared. Start it again.")

    def distrust(self) -> Flow[None]:
        """Let neither the present generation nor that of a running rebuild count as complete."""
        yield Call("HDEL", self.state, "complete", "building")

    def clear(self) -> Flow[bool]:
        """Delete all generations, and return whether there were any."""
        while True:
            shape = self.shape
            stored = Shape.parse((yield CLEAR([self.state, self.lease, *self.all_keys()], [str(shape)])).decode())
            self._remember(Shape() if stored == shape else stored)
            if stored == shape:
                yield Call("ZREM", names(self.index.component), self.index.name)
                return bool(shape.generations)

    def _remember(self, shape: Shape) -> None:
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        _shapes[self._place] = shape

    def _keys_of(self, shape: Shape) -> dict[str, int]:
        return {key: bits for generation in shape.generations for key, bits in self.keys(generation).items()}

    def _change(self, new: Shape, step: str = "", token: str = "") -> Flow[str]:
        """Replace the shape and return "", or a reason. If the stored one is another one, it is known afterwards."""
        shape = self.shape
        before, after = self._keys_of(shape), self._keys_of(new)
        ended = [key for key in before if key not in after]
        begun = {key: bits for key, bits in after.items() if key not in before}
        args: list[Argument] = [str(self.parameters), str(shape), str(new), step, token, LEASE_MS]
        args += [len(ended), self.ttl_ms, *begun.values()]
        reason, *stored = yield CHANGE([self.state, self.lease, *ended, *begun], args)
        if not reason:
            self._remember(new)
        elif reason == b"stale":
            self.learn(*stored)
        return str(reason.decode())
