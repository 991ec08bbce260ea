"""Autocomplete for the rows of a model, which follows what is committed."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis_kit.autocomplete.index import Autocomplete, Entry, Fields, Hit
from redis_kit.autocomplete.words import LONGEST_TEXT
from redis_kit.core.errors import ConfigurationError, InvalidValue, ParameterMismatch, RebuildLost, RedisFailure
from redis_kit.core.indexes.generations import Generations
from redis_kit.core.indexes.model_index import indexes
from redis_kit.core.indexes.row_index import RowIndex, WriterLost
from redis_kit.core.logs.rate_limit import LogRateLimit

logger = logging.getLogger("redis_kit")
UNANSWERED = (RedisFailure, ParameterMismatch)  # the database answers then
_log_limit = LogRateLimit()
Source = str | Callable[[Any], Any]  # the name of a field, or a function of a row


class ModelAutocomplete(RowIndex):
    """The rows of a model, found by the words of some fields. Create it in ``models.py``, below the model.

    ``fields`` are the names of text fields. ``scope`` and ``weight`` are each the name of a field or a function of a
    row. Rows without text are left out. A rebuild completes it; it answers until the server restarts, or a change could
    not be stored.
    """

    command = "rk_autocomplete"

    def __init__(
        self, model: Any, fields: Sequence[str], *, scope: Source | None = None, weight: Source | None = None
    ) -> None:
        if isinstance(fields, str) or not fields:
            raise ConfigurationError(f"fields must be a list of names of fields, not {fields!r}.")
        sources = [*fields, *(source for source in (scope, weight) if source)]
        named = [model._meta.get_field(source) for source in sources if isinstance(source, str)]
        label = model._meta.concrete_model._meta.label_lower
        if any(index.name == label for index in indexes(ModelAutocomplete)):
            raise ConfigurationError(f"The model {label} has a ModelAutocomplete already.")
        super().__init__(model, label)
        self.text_fields, self.scope, self.weight = tuple(fields), scope, weight
        if len(named) == len(sources):
            self.fields = frozenset(name for field in named for name in (field.name, field.attname))

    def index(self, scope: Any = None) -> Autocomplete:
        """Return the index that holds the rows of a scope."""
        return Autocomplete(self.name, scope, unique_ids=True)

    @property
    def using(self) -> str:
        """Return the alias of its connection."""
        return self.index().using

    @property
    def generations(self) -> Generations:
        """See RowIndex.generations."""
        return self.index().generations

    def search(self, text: str, limit: int = 10, *, scope: Any = None) -> list[Hit] | None:
        """Return the hits of Autocomplete.search(); None if only the database can answer. It raises no outage."""
        index = self.index(scope)
        try:
            return None if self.misses_change() else index.run_flow(index.look_up(text, limit, guard=True))
        except UNANSWERED as error:
            self._note(error)
            return None

    async def asearch(self, text: str, limit: int = 10, *, scope: Any = None) -> list[Hit] | None:
        """See search()."""
        index = self.index(scope)
        try:
            return None if self.misses_change() else await index.arun_flow(index.look_up(text, limit, guard=True))
        except UNANSWERED as error:
            self._note(error)
            return None

    def text_of(self, row: Any) -> str:
        """Return the text of a row: its fields, with a space between."""
        values = (self._value(name, row) for name in self.text_fields)
        return " ".join(str(value) for value in values if value is not None).strip()[:LONGEST_TEXT]

    def document(self, row: Any) -> Fields | None:
        """See RowIndex.document()."""
        text, weight = self.text_of(row), float(self._value(self.weight, row) or 0)
        entry = Entry(str(row.pk), text, weight, None, self._value(self.scope, row))
        return self.index().fields(entry) if text else None

    def write(self, documents: Mapping[str, Any], gone: Sequence[str], writer: str, rebuild: str = "") -> None:
        """See RowIndex.write()."""
        index, items = self.index(), list(documents.values())
        for pk in gone:
            with suppress(InvalidValue):  # a key that can't be an id was never stored
                items.append(index.removal(pk))
        try:
            index.run_flow(index.store(items, writer, rebuild))
        except RebuildLost as error:
            raise WriterLost(str(error)) from error

    def _note(self, error: Exception) -> None:
        if _log_limit.allows(f"{self.name} {type(error).__name__}"):
            logger.warning("autocomplete: %r is not asked: %s", self, error)

    def _value(self, source: Source | None, row: Any) -> Any:
        if source is None or callable(source):
            return source and source(row)
        return getattr(row, self.model._meta.get_field(source).attname)
