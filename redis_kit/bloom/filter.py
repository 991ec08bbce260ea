"""A Bloom filter (B. Bloom: Space/Time Trade-offs in Hash Coding, 1970) that grows by layers."""

import hashlib
import struct
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Self
from uuid import UUID

from redis_kit.bloom.parameters import SLICES, BloomParameters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.bloom.state import FilterInfo, bitmaps, describe
from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.indexes.generations import BATCH, LEASE_MS, Generations, Shape
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.steps import Argument
from redis_kit.core.text import shortened
from redis_kit.core.values.sequences import batched, several

ADD = scripts.load(__package__, "add")
CONTAINS = scripts.load(__package__, "contains")
DIGEST = 12  # bytes: two numbers of 48 bits, which are exact in a double of Lua
YES = ord("1")

Value = str | bytes | int | UUID
Source = Iterable[Value] | AsyncIterable[Value]
Progress = Callable[[int], object]


class BloomFilter(Primitive):
    """A set that answers "surely not" or "probably": whether a value was added, in about ten bits for each value.

    Values are str, bytes, int and UUID; 1 and "1" differ. ``capacity`` is 1 to 10^9 values, ``error`` the share of
    false positives, 0.000001 to 0.5. With a ``window`` of 1 second to 366 days, values fade that long after their last
    add. Calls cost one round trip for each 1,000 values. A further one is needed at the first use in a process, and
    after a change of the filter's layers; those above 32 MiB take one for each 32 MiB. There is no ``remove()``: it
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
        self.parameters = BloomParameters.checked(capacity, error, window)

    @classmethod
    def with_parameters(cls, name: str, parameters: BloomParameters, using: str) -> Self:
        """Return the filter with parameters that were checked before."""
        checked = cls(name, using=using)
        checked.parameters = parameters
        return checked

    @cached_property
    def _generations(self) -> Generations:
        parameters = self.parameters
        return Generations(self, parameters, partial(bitmaps, self), parameters.ttl_ms, prefix=parameters.prefix)

    @operation
    def add(self, value: Value) -> Flow[bool]:
        """Add a value, and return whether it was new.

        A repeat after an ``indeterminate`` RedisUnavailable changes nothing, but may return False for a new value.
        Raises ParameterMismatch if the filter is stored with other parameters.
        """
        return (yield from self._add([digest(value)]))[0]

    @operation
    def add_many(self, values: Iterable[Value]) -> Flow[list[bool]]:
        """Add values, and return for each whether it was new."""
        answers: list[bool] = []
        for batch in batched(several(values), BATCH):
            answers += yield from self._add(_digests(batch))
        return answers

    @operation(if_open=True)
    def contains(self, value: Value) -> Flow[bool]:
        """Return False if a value was surely not added; True if it probably was. Raises ParameterMismatch."""
        return (yield from self.look_up([digest(value)]))[0]

    def __contains__(self, value: Value) -> bool:
        return self.contains(value)

    def contains_many(self, values: Iterable[Value]) -> list[bool]:
        """Return contains() of each value."""
        packed = _digests(values)
        return list(self.run_flow(self.look_up(packed), if_open=[True] * len(packed)))

    async def acontains_many(self, values: Iterable[Value]) -> list[bool]:
        """See contains_many()."""
        packed = _digests(values)
        return list(await self.arun_flow(self.look_up(packed), if_open=[True] * len(packed)))

    @operation
    def info(self) -> Flow[FilterInfo | None]:
        """Return items, fill, layers, memory and expected error; None if nothing was added yet."""
        return describe(self, self.parameters.source)

    @operation
    def clear(self) -> Flow[bool]:
        """Delete all values and the parameters, and return whether there was anything. A running rebuild fails."""
        return self._generations.clear()

    @operation
    def rebuild(self, values: Source, *, progress: Progress | None = None, keep: bool = False) -> Flow[int]:
        """Replace all values in one step, and return how many there were. Adds in the meantime count, too.

        The values should be read lazily: those of a list that was made before the call lack what was added since. In
        ``arebuild()`` they may be asynchronous.
        ``progress`` is called with the number of values after each 1,000. Raises RebuildRunning, and RebuildLost if the
        server restarts during it, or a minute passes between two batches. If it fails or dies, the filter stays as it
        was, unless the reply to its last call was lost. With ``keep`` the values of before count until the next
        rebuild, too. A filter with a window can't be rebuilt, as nobody knows when its values were added.
        """
        if self.parameters.window:
            raise InvalidValue(f"{self!r} has a window, so it can't be rebuilt: its values were added at many times.")
        rebuild = self._generations.rebuild
        return rebuild(values, lambda batch, id: self._add(_digests(batch), id), progress=progress, keep=keep)

    def distrust(self) -> None:
        """Let the filter count as incomplete until the next rebuild, as it may lack values."""
        self.run_flow(self._generations.distrust())

    def look_up(self, digests: Sequence[bytes], *, guarded: bool = False) -> Flow[list[bool]]:
        """Return whether the values of these digests may be there; if ``guarded``, all may unless it is complete."""
        generations, answers = self._generations, list[bool]()
        shape = generations.shape
        while len(answers) < len(digests):
            batch = digests[len(answers) : len(answers) + BATCH]
            args: list[Argument] = [
                *self._common_arguments(shape),
                b"".join(batch),
                self.parameters.source if guarded else "",
            ]
            bits, reason, *stored = yield CONTAINS([generations.state, *generations.keys_of(shape)], args)
            if reason == b"stale":
                shape = generations.learn(*stored)
            else:
                answers += [True] * len(batch) if reason else [answer == YES for answer in bits]
        return answers

    def _add(self, digests: Sequence[bytes], rebuild: str = "") -> Flow[list[bool]]:
        """Add values; with the id of a rebuild to its generation only."""
        generations, answers = self._generations, list[bool]()
        shape = generations.shape
        while len(answers) < len(digests):
            names = [generations.state, generations.lease, *generations.keys_of(shape)]
            args: list[Argument] = [*self._common_arguments(shape), b"".join(digests[len(answers) :]), rebuild]
            added, reason, *details = yield ADD(names, [*args, LEASE_MS, self.parameters.slice_ms])
            answers += [answer == YES for answer in added]
            if reason == b"stale":
                shape = generations.learn(*details)
                if rebuild:
                    generations.require(shape, rebuild)
                elif not shape.active:
                    shape = yield from generations.rotate(shape)
            elif reason == b"full":
                shape = yield from generations.grow(shape, details[0].decode())
            elif reason == b"old":
                shape = yield from generations.rotate(shape, SLICES + 1)
            elif reason == b"dead":
                shape = yield from generations.forget(shape)
        return answers

    def _common_arguments(self, shape: Shape) -> list[Argument]:
        """Return what each script compares with what is stored, and the sizes of all layers."""
        sizes = [struct.pack("<ddd", *layer) for layer in self.parameters.layers(shape)]
        return [str(self.parameters), str(shape), b"".join(sizes)]

    aadd = twin(add)
    aadd_many = twin(add_many)
    acontains = twin(contains)
    ainfo = twin(info)
    aclear = twin(clear)
    arebuild = twin(rebuild)


def digest(value: Any) -> bytes:
    """Return the digest of a value: BLAKE2b (RFC 7693) of its type and its content, so 1 and "1" differ.

    Raises InvalidValue for other types, and for True and False.
    """
    if isinstance(value, str):
        content = b"s" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, int) and not isinstance(value, bool):
        content = b"i%x" % value
    elif isinstance(value, UUID):
        content = b"u" + value.bytes
    elif isinstance(value, bytes):
        content = b"b" + value
    else:
        raise InvalidValue(f"A filter takes str, bytes, int and UUID, not {shortened(value)}.")
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _digests(values: Iterable[Any]) -> list[bytes]:
    return [digest(value) for value in several(values)]
