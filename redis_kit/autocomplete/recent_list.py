"""Recent lists: what somebody chose last, such as the people they wrote to (J. Carlson: Redis in Action, 6.1.1)."""

from typing import Any
from uuid import UUID

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.autocomplete.words import checked_text, query_words, spans
from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import encode
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.steps import Call
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number

RECENT = scripts.load(__package__, "recent")


class RecentList(Primitive):
    """The last values that an owner has chosen, the latest first. Each value is in it once.

    The owner is text, an int or a UUID, such as the primary key of a user; ``size`` is 1 to 1,000 values of at most
    1,000 characters. Each call costs one round trip, and a repeat is harmless.
    """

    component, settings = "autocomplete", AutocompleteSettings

    def __init__(
        self, name: str, owner: str | int | UUID, size: int = 100, using: str | None = None, **unknown: Any
    ) -> None:
        super().__init__(name, using=using or conf.section(AutocompleteSettings).USING, unknown=unknown or NOTHING)
        # None would be one list of all who are not logged in.
        if isinstance(owner, bool) or not isinstance(owner, str | int | UUID):
            raise InvalidValue(f"The owner of a list must be text, an int or a UUID, not {shortened(owner)}.")
        self.owner, self.size = str(owner), whole_number("size", size, (1, 1000))
        self._encoded_owner = encode(self.owner)

    def tag(self) -> str:
        """Return the hash tag: that of the name and the owner."""
        return f"{super().tag()}:{self._encoded_owner}"

    @operation
    def add(self, value: str) -> Flow[None]:
        """Put a value at the beginning. The last one is dropped if the list is full."""
        yield RECENT([self.key("recent")], [checked_text(value), self.size])

    @operation
    def remove(self, value: str) -> Flow[bool]:
        """Remove a value, and return whether it was there."""
        return bool((yield Call("LREM", self.key("recent"), 0, checked_text(value))))

    @operation(if_open=[])
    def all(self) -> Flow[list[str]]:
        """Return all values."""
        return self._read("")

    @operation(if_open=[])
    def match(self, prefix: str) -> Flow[list[str]]:
        """Return the values in which words begin with those of the text, as a search of ``Autocomplete`` does."""
        return self._read(prefix)

    @operation
    def clear(self) -> Flow[bool]:
        """Remove all values, and return whether there were any."""
        return bool((yield Call("UNLINK", self.key("recent"))))

    def _read(self, prefix: str) -> Flow[list[str]]:
        words = query_words(prefix)
        stored = yield Call("LRANGE", self.key("recent"), 0, self.size - 1)
        values = [value.decode("utf-8", "surrogatepass") for value in stored]
        return [value for value in values if spans(value, words) is not None]

    aadd = twin(add)
    aremove = twin(remove)
    aall = twin(all)
    amatch = twin(match)
    aclear = twin(clear)
