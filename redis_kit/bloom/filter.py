"""A Bloom filter (B. Bloom: Space/Time Trade-offs in Hash Coding, 1970) that grows by layers."""

import struct
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from math import ceil
from typing import Any

from redis_kit.bloom import keys
from redis_kit.bloom.errors import ParameterMismatch, RebuildRunning
from redis_kit.bloom.generations import Generation, Generations
from redis_kit.bloom.hashing import Value, digests
from redis_kit.bloom.inspection import DESCRIBE, FilterInfo
from redis_kit.bloom.settings import BloomSettings
from redis_kit.bloom.sizes import SLICES, Parameters
from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.steps import Argument, Call
from redis_kit.core.values.sequences import batched

ADD = scripts.load(__package__, "add")
CONTAINS = scripts.load(__package__, "contains")
BATCH = 1000  # values in one call: the server does nothing else for some milliseconds
Progress = Callable[[int], object]


class BloomFilter(Primitive):
    """A set that answers "surely not" or "probably": whether a value was added, in about ten bits for each value.

    Values are str, bytes, int and UUID; 1 and "1" differ. Calls cost one round trip, for each 1,000 values. A further
    one is needed at the first use in a process, and after a change of the filter's layers. There is no ``remove()``: it
    would take bits that other values need.
    """

    component, settings = "bloom", BloomSettings

    def __init__(
        self,
        name: str,
        capacity: int = 1_000_000,
        error: float = 0.01,
        using: str | None = None,
        *,
        window: timedelta | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__(name, using=using or conf.section(BloomSettings).USING, unknown=unknown or NOTHING)
        self.parameters = Parameters.checked(capacity, error, window.total_seconds() if window is not None else 0)
        if window is not None and not self.parameters.window:
            raise InvalidValue("window must be a positive timedelta.")

    def add(self, value: Value) -> bool:
        """Add a value, and return whether it was new.

        A repeat after an ``indeterminate`` RedisUnavailable changes nothing, but may return False for a new value.
        """
        return bool(self.run_flow(self._add(digests([value])))[0])

    async def aadd(self, value: Value) -> bool:
        """See add()."""
        return bool((await self.arun_flow(self._add(digests([value]))))[0])

    def add_many(self, values: Iterable[Value]) -> list[bool]:
        """Add values, and return for each whether it was new."""
        return [new for batch in batched(_several(values), BATCH) for new in self.run_flow(self._add(digests(batch)))]

    async def aadd_many(self, values: Iterable[Value]) -> list[bool]:
        """See add_many()."""
        flows = (self._add(digests(batch)) for batch in batched(_several(values), BATCH))
        return [new for flow in flows for new in await self.arun_flow(flow)]

    def contains(self, value: Value) -> bool:
        """Return False if a value was surely not added; True if it probably was."""
        return self.contains_many([value])[0]

    async def acontains(self, value: Value) -> bool:
        """See contains()."""
        return (await self.acontains_many([value]))[0]

    def __contains__(self, value: Value) -> bool:
        return self.contains(value)

    def contains_many(self, values: Iterable[Value]) -> list[bool]:
        """Return contains() of each value."""
        answers: list[bool] = []
        for batch in batched(_several(values), BATCH):
            answers += self.run_flow(self.look_up(digests(batch)), if_open=[True] * len(batch))
        return answers

    async def acontains_many(self, values: Iterable[Value]) -> list[bool]:
        """See contains_many()."""
        answers: list[bool] = []
        for batch in batched(_several(values), BATCH):
            answers += await self.arun_flow(self.look_up(digests(batch)), if_open=[True] * len(batch))
        return answers

    def info(self) -> FilterInfo | None:
        """Return items, fill, layers, memory and expected error; None if nothing was added yet."""
        return self.run_flow(self._info())

    async def ainfo(self) -> FilterInfo | None:
        """See info()."""
        return await self.arun_flow(self._info())

    def clear(self) -> bool:
        """Delete all values and the parameters, and return whether there was anything. A running rebuild fails."""
        return bool(self.run_flow(self._clear()))

    async def aclear(self) -> bool:
        """See clear()."""
        return bool(await self.arun_flow(self._clear()))

    def rebuild(self, values: Iterable[Value], *, progress: Progress | None = None) -> int:
        """Replace all values in one step, and return how many there were. Adds in the meantime count, too.

        The values should be read lazily: those of a list that was made before the call lack what was added since.

        ``progress`` is called with the number of values after each 1,000. Raises RebuildRunning, and RebuildLost if the
        server restarts meanwhile. If it fails or dies, the filter stays as it was.
        """
        values, generation, count = _several(values), Generation.new(), 0
        self.run_flow(self._start(generation))
        try:
            for batch in batched(values, BATCH):
                self.run_flow(self._add(digests(batch), generation.id))
                count += len(batch)
                if progress:
                    progress(count)
            self.run_flow(self._generations().switch(generation.id))
        except BaseException:
            with suppress(RedisKitError):  # it ends with its lease
                self.run_flow(self._generations().abandon(generation.id))
            raise
        return count

    async def arebuild(
        self, values: Iterable[Value] | AsyncIterable[Value], *, progress: Progress | None = None
    ) -> int:
        """See rebuild(). The values may be an async iterable, too."""
        generation, count, batch = Generation.new(), 0, list[Value]()
        await self.arun_flow(self._start(generation))
        try:
            async for value in values if isinstance(values, AsyncIterable) else _each(_several(values)):
                batch.append(value)
                if len(batch) == BATCH:
                    await self.arun_flow(self._add(digests(batch), generation.id))
                    count, batch = count + BATCH, []
                    if progress:
                        progress(count)
            await self.arun_flow(self._add(digests(batch), generation.id))
            await self.arun_flow(self._generations().switch(generation.id))
        except BaseException:
            with suppress(RedisKitError):
                await self.arun_flow(self._generations().abandon(generation.id))
            raise
        return count + len(batch)

    def distrust(self) -> None:
        """Let the filter count as incomplete until the next rebuild, as it may lack values."""
        self.run_flow(self._generations().distrust())

    def look_up(self, packed: list[bytes], *, guard: bool = False) -> Flow[list[bool]]:
        """Return whether the values of these digests may have been added; with ``guard`` True if it is incomplete."""
        generations = self._generations()
        while True:
            shape = generations.shape
            args: list[Argument] = [str(self.parameters), str(shape), self._sizes(), b"".join(packed), int(guard)]
            answers, reason, *stored = yield CONTAINS([generations.state, *generations.keys_of(shape)], args)
            if reason == b"stale":
                self._learn(*stored)
            else:
                return [True] * len(packed) if reason else [answer == 49 for answer in answers]  # 49 is "1"

    def _add(self, packed: list[bytes], token: str = "") -> Flow[list[bool]]:
        generations, answers = self._generations(), list[bool]()
        ttl = ceil(conf.section(BloomSettings).REBUILD_TIMEOUT * 1000)
        while len(answers) < len(packed):
            shape = generations.shape
            if token and shape.generations:
                generations.require(token)
            names = [generations.state, generations.lease, *generations.keys_of(shape)]
            rest = b"".join(packed[len(answers) :])
            args: list[Argument] = [str(self.parameters), str(shape), self._sizes(), rest, token, ttl]
            added, reason, *details = yield ADD(names, [*args, self.parameters.slice_ms])
            answers += [answer == 49 for answer in added]
            if reason == b"stale":
                self._learn(*details)
                if token:
                    generations.require(token)
                elif not generations.shape.active:
                    yield from self._create()
            elif reason == b"full":
                yield from generations.grow(details[0].decode())
            elif reason == b"old":
                yield from generations.rotate()
            elif reason == b"dead":
                yield from generations.forget()
        return answers

    def _start(self, generation: Generation) -> Flow[None]:
        yield Call("ZADD", keys.filters(), 0, self.name)
        generations = self._generations()
        try:
            reply = yield Call("HMGET", generations.state, "parameters", "shape")
            self._learn(*(field or b"" for field in reply))
            yield from generations.start(generation, ceil(conf.section(BloomSettings).REBUILD_TIMEOUT * 1000))
        except RebuildRunning:
            raise RebuildRunning(f"Another process rebuilds the filter {self.name!r}.") from None

    def _create(self) -> Flow[None]:
        yield Call("ZADD", keys.filters(), 0, self.name)
        yield from self._generations().rotate()

    def _clear(self) -> Flow[bool]:
        existed = yield from self._generations().clear()
        yield Call("ZREM", keys.filters(), self.name)
        return existed

    def _info(self) -> Flow[FilterInfo | None]:
        generations = self._generations()
        return FilterInfo.parse(self.name, (yield DESCRIBE([generations.state, generations.lease])))

    def _learn(self, parameters: bytes, shape: bytes) -> None:
        if parameters and parameters.decode() != str(self.parameters):
            stored = Parameters.parse(parameters.decode()).described
            raise ParameterMismatch(
                f"The filter {self.name!r} is stored with {stored}, and the code has {self.parameters.described}. "
                "Use one of the two; clear() deletes what is stored."
            )
        self._generations().learn(shape.decode())

    def _sizes(self) -> bytes:
        shape = self._generations().shape
        layers = [self.parameters.layer(number + 1) for each in shape.generations for number in range(each.layers)]
        return b"".join(struct.pack("<ddd", *layer) for layer in layers)

    def _generations(self) -> Generations:
        most = SLICES + 1 if self.parameters.window else 1
        ttl = self.parameters.ttl_ms
        return Generations(self.using, self.tag(), str(self.parameters), self._bitmaps, most=most, ttl_ms=ttl)

    def _bitmaps(self, generation: Generation) -> list[tuple[str, int]]:
        tag = self.tag()
        return [
            (keys.bits(tag, generation.id, number, part), bits)
            for number in range(1, generation.layers + 1)
            for part, bits in enumerate(self.parameters.layer(number).parts)
        ]


def _several(values: Any) -> Any:
    if isinstance(values, (str, bytes)):
        digests(values)  # raises InvalidValue
    return values


async def _each(values: Iterable[Value]) -> Any:
    for value in values:
        yield value
