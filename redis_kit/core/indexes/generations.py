"""Generations of an index: a rebuild fills a new one while adds go to both, and switches to it in one step.

The keys of a generation, and what they hold, are the business of its index.
"""

import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from secrets import token_hex
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import ParameterMismatch, RebuildLost, RebuildRunning, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.core.values.sequences import several

ALLOCATE = scripts.load(__package__, "allocate")
CHANGE = scripts.load(__package__, "change")
CLEAR = scripts.load(__package__, "clear")
BATCH = 1000  # values in one call: the server does nothing else for some milliseconds
LEASE_MS = 60_000  # after its last batch of values a rebuild counts as dead
AT_ONCE = 2**28  # bits that one script allocates: the server does nothing else for some 10 ms
MOST_SHAPES = 1024
_shapes: dict[tuple[str, str], "Shape"] = {}  # by connection and state: what this process has seen
conf.on_change(_shapes.clear)


class Generation(NamedTuple):
    """A part of an index that is replaced as a whole. Its id is new, so no key is that of a dead rebuild."""

    id: str
    layers: int = 1

    @classmethod
    def new(cls, prefix: str = "") -> "Generation":
        """Return a generation with an id of its own, after a prefix of letters and digits."""
        return cls(prefix + token_hex(8))


class Shape(NamedTuple):
    """The generations that answer, the newest first, and the one that a rebuild fills."""

    active: tuple[Generation, ...] = ()
    shadow: Generation | None = None

    @classmethod
    def parse(cls, text: str) -> "Shape":
        """Return the shape that a server has stored."""
        parts = [(mark, Generation(id, int(layers))) for mark, id, layers in re.findall(r"(\+?)(\w+):(\d+)", text)]
        active = tuple(generation for mark, generation in parts if not mark)
        return cls(active, next((generation for mark, generation in parts if mark), None))

    def __str__(self) -> str:
        texts = [f"{id}:{layers}" for id, layers in self.active]
        return " ".join([*texts, f"+{self.shadow.id}:{self.shadow.layers}"] if self.shadow else texts)

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Return all generations, in the order of the text."""
        return (*self.active, self.shadow) if self.shadow else self.active

    def grown(self, id: str) -> "Shape":
        """Return the shape in which a generation has one layer more."""
        grown = [each._replace(layers=each.layers + (each.id == id)) for each in self.generations]
        return Shape(tuple(grown[: len(self.active)]), *grown[len(self.active) :])

    def has_shadow(self, token: str) -> bool:
        """Return whether this rebuild fills a generation."""
        return self.shadow is not None and self.shadow.id == token


_NONE = Shape()


def names(component: str) -> str:
    """Return the sorted set of the names of all indexes of a component."""
    return f"{conf.section(KitSettings).PREFIX}:{{{component}:indexes}}:names"


class Source:
    """A step that returns the next values of a rebuild, and nothing at their end. It asks no server."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self._iterator: Any = None

    def run(self, client: Any) -> list[Any]:
        """Return at most 1,000 values."""
        if self._iterator is None:
            self._iterator = iter(several(self._values))
        return list(islice(self._iterator, BATCH))

    async def arun(self, client: Any) -> list[Any]:
        """See run()."""
        if not isinstance(self._values, AsyncIterable):
            return self.run(client)
        if self._iterator is None:
            self._iterator = aiter(self._values)
        batch: list[Any] = []
        async for value in self._iterator:
            batch.append(value)
            if len(batch) == BATCH:
                break
        return batch


def in_use(doing: str, lease_ms: int) -> RebuildRunning:
    """Return the error about another process that does something to an index, or did it when it died."""
    return RebuildRunning(f"Another process {doing}, or died in the last {lease_ms // 1000} seconds. Wait for its end.")


class Generations:
    """The generations of one index.

    All processes must have the same ``parameters``. Their text is stored; their ``parse()`` reads it, and ``described``
    says it in words.

    ``keys`` returns those of a generation with these parameters, each with the bits to allocate, or 0. Ids of new
    generations begin with ``prefix``.

    An operation reads ``shape`` once, and gives it to all that it calls: another thread may learn a new one at any
    time. A script refuses a shape that is not the stored one, and ``learn()`` takes its answer.
    """

    def __init__(
        self,
        index: Primitive,
        parameters: Any,
        keys: Callable[[Generation, Any], Mapping[str, int]],
        ttl_ms: int = 0,
        prefix: str = "",
    ) -> None:
        self.index, self.parameters, self.keys, self.ttl_ms = index, parameters, keys, ttl_ms
        self.prefix = prefix
        self.state, self.lease = index.key("state"), index.key("lease")
        self._place = (index.using, self.state)

    @property
    def shape(self) -> Shape:
        """Return the shape that this process has seen last."""
        return _shapes.get(self._place, _NONE)

    def learn(self, parameters: bytes | None, shape: bytes | None) -> Shape:
        """Return the stored shape, and remember it. Raises ParameterMismatch for other parameters than the code's."""
        if parameters and parameters.decode() != str(self.parameters):
            stored = self.parameters.parse(parameters.decode())
            raise ParameterMismatch(
                f"{self.index!r} is stored with {stored.described}, and the code has {self.parameters.described}. "
                "Use one of the two; clear() deletes what is stored."
            )
        return self._remember(Shape.parse((shape or b"").decode()))

    def read(self) -> Flow[Shape]:
        """Return the stored shape. One round trip."""
        return self.learn(*(yield Call("HMGET", self.state, "parameters", "shape")))

    def keys_of(self, shape: Shape) -> list[str]:
        """Return the keys of all generations, in the order of the shape."""
        return list(self._allocated(shape))

    def rotate(self, shape: Shape, most: int = 1) -> Flow[Shape]:
        """Begin a generation, the first one or the next one of a window, and end those beyond ``most``."""
        if not shape.active:
            yield self._list()
        new = Generation.new(self.prefix)
        reserved = self.index.key(f"begins:{shape.active[0].id if shape.active else ''}")
        if self._bits(new) > AT_ONCE:  # all processes that begin it now allocate the same one
            calls = [Call("SET", reserved, new.id, "NX", "PX", LEASE_MS), Call("GET", reserved)]
            _is_first, id = yield Batch(calls)
            new = Generation(id.decode()) if id else new
        changed = Shape((new, *shape.active)[:most], shape.shadow)
        return (yield from self._change(shape, changed, ended=[reserved]))[1]

    def grow(self, shape: Shape, id: str) -> Flow[Shape]:
        """Give a generation that is full one layer more."""
        return (yield from self._change(shape, shape.grown(id)))[1]

    def forget(self, shape: Shape) -> Flow[Shape]:
        """Drop the generation of a rebuild that died. Does nothing if it lives."""
        return (yield from self._change(shape, Shape(shape.active), "forget"))[1]

    def start(self, token: str) -> Flow[Shape]:
        """Begin the generation of a rebuild, and drop that of a dead one. Raises RebuildRunning.

        ``token`` becomes the generation's id; ``Generation.new()`` has one. A repeat changes nothing.
        """
        shape, reason = self.shape, "stale"
        yield self._list()
        if self._bits(Generation(token)) > AT_ONCE and (yield Call("GET", self.lease)) not in (None, token.encode()):
            raise self._running()  # before anything is allocated
        while reason and not shape.has_shadow(token):
            reason, shape = yield from self._change(shape, Shape(shape.active, Generation(token)), "start", token)
            if reason == "busy":
                raise self._running()
        return shape

    def switch(self, token: str, *, keep: bool = False) -> Flow[None]:
        """Let the generation of a rebuild answer in place of all others. Raises RebuildLost if it is not whole.

        With ``keep`` the newest of the others goes on answering beside it, until the next rebuild.
        """
        shape, reason = self.shape, "stale"
        while reason:
            if not shape.has_shadow(token):
                shape = yield from self.read()
                self.require(shape, token)
            active = (*shape.generations[-1:], *shape.active[: int(keep)])
            reason, shape = yield from self._change(shape, Shape(active), "switch", token)
            if reason == "lost":
                raise RebuildLost("The server restarted, or an add failed, during the rebuild. Start it again.")

    def abandon(self, token: str) -> Flow[None]:
        """Drop the generation of a rebuild, if it is still there."""
        shape, reason = (yield from self.read()), "stale"
        while reason and shape.has_shadow(token):
            reason, shape = yield from self._change(shape, Shape(shape.active), "abandon", token)

    def rebuild(
        self,
        values: Any,
        write: Callable[[list[Any], str], Flow[Any]],
        *,
        progress: Callable[[int], object] | None = None,
        keep: bool = False,
    ) -> Flow[int]:
        """Fill a generation with values, asynchronous ones if the flow is carried out so, and switch to it.

        ``write`` stores a batch of at most 1,000 values in the generation with an id.
        """
        source, token, count = Source(values), Generation.new(self.prefix).id, 0
        try:
            yield from self.start(token)
            while batch := (yield source):
                yield from write(batch, token)
                count += len(batch)
                if progress:
                    progress(count)
            yield from self.switch(token, keep=keep)
        except GeneratorExit:
            raise
        except BaseException:
            with suppress(RedisKitError):  # without it, the lease ends
                yield from self.abandon(token)
            raise
        return count

    def require(self, shape: Shape, token: str) -> None:
        """Raise RebuildLost unless a shape that the server has sent has the generation of this rebuild."""
        if not shape.has_shadow(token):
            raise RebuildLost("The rebuild paused for too long, or the index was cleared. Start it again.")

    def distrust(self) -> Flow[None]:
        """Let neither the present generation nor that of a running rebuild count as complete."""
        yield Call("HDEL", self.state, "complete", "building")

    def clear(self) -> Flow[bool]:
        """Delete all generations, whatever their parameters, and return whether there were any."""
        shape, parameters = self.shape, self.parameters
        while True:
            keys = list(self._allocated(shape, parameters))
            stored = yield CLEAR([self.state, self.lease, *keys], [str(parameters), str(shape)])
            if not stored:
                self._remember(Shape())
                return bool(shape.generations)
            parameters = self.parameters.parse(stored[0].decode())
            shape = Shape.parse(stored[1].decode())

    def _list(self) -> Call:
        """Return the call that lists the index by its name. It stays listed: what reads the list drops dead names."""
        return Call("ZADD", names(self.index.component), 0, self.index.name)

    def _running(self) -> RebuildRunning:
        return in_use(f"rebuilds {self.index!r}", LEASE_MS)

    def _bits(self, generation: Generation) -> int:
        return sum(self.keys(generation, self.parameters).values())

    def _remember(self, shape: Shape) -> Shape:
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        _shapes[self._place] = shape
        return shape

    def _allocated(self, shape: Shape, parameters: Any = None) -> dict[str, int]:
        allocated: dict[str, int] = {}
        for generation in shape.generations:
            allocated.update(self.keys(generation, parameters or self.parameters))
        return allocated

    def _change(
        self, shape: Shape, new: Shape, step: str = "", token: str = "", ended: Iterable[str] = ()
    ) -> Flow[tuple[str, Shape]]:
        """Replace a shape; return "" or a reason, and the shape that is stored now."""
        before, after = self._allocated(shape), self._allocated(new)
        ended = [*ended, *(key for key in before if key not in after)]
        begun = {key: bits for key, bits in after.items() if key not in before}
        if sum(begun.values()) > AT_ONCE:
            for key, bits in begun.items():
                if not (yield ALLOCATE([self.state, key], [str(shape), bits, LEASE_MS])):
                    break
        args: list[Argument] = [str(self.parameters), str(shape), str(new), step, token, LEASE_MS]
        args += [len(ended), self.ttl_ms, *begun.values()]
        reason, *stored = yield CHANGE([self.state, self.lease, *ended, *begun], args)
        if not reason:
            return "", self._remember(new)
        return reason.decode(), self.learn(*stored) if stored else shape
