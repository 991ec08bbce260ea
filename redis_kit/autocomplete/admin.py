"""Autocomplete in Django's admin."""

from typing import Any

from django.db import router
from django.http import HttpRequest

from redis_kit.autocomplete.index import LIMIT
from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete
from redis_kit.autocomplete.words import query_words
from redis_kit.core.indexes.model_index import indexes


class AutocompleteAdminMixin:
    """Let the ``ModelAutocomplete`` of the model answer ``autocomplete_fields`` that point to it; before ModelAdmin.

    The index names the rows, the heaviest 100 at most, and the queryset of the admin goes on to restrict and to order
    them. The database is asked as before for a search without words, if the queryset leaves some of 100 rows out, if
    the index has scopes, and if it can't answer.
    """

    def get_autocomplete_scope(self, request: HttpRequest) -> Any:
        """Return the scope to search in. An index with scopes is only asked if this returns one."""
        return None

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Return the rows that match, and whether some may be there twice."""
        rows = self._find(request, queryset, search_term)
        if rows is not None:
            return rows, False
        return super().get_search_results(request, queryset, search_term)  # type: ignore[misc, no-any-return]

    def _find(self, request: HttpRequest, queryset: Any, text: str) -> Any:
        is_autocomplete = request.resolver_match is not None and request.resolver_match.url_name == "autocomplete"
        index = _index_of(queryset) if is_autocomplete and query_words(text) else None
        scope = self.get_autocomplete_scope(request) if index else None
        if index is None or (index.scope is not None and scope is None):
            return None
        hits = index.search(text, LIMIT[1], scope=scope)
        if hits is None:
            return None
        rows = queryset.filter(pk__in=[hit.id for hit in hits])
        return rows if len(hits) < LIMIT[1] or rows.count() == len(hits) else None


def _index_of(queryset: Any) -> ModelAutocomplete | None:
    for index in indexes(ModelAutocomplete):
        if issubclass(queryset.model, index.model):
            aliases = {router.db_for_read(index.model), router.db_for_write(index.model)}
            return index if queryset.db in aliases else None
    return None
