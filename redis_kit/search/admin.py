"""Search in the change list of the admin by an index."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from redis_kit.search.engine import MAX_HITS


class SearchAdminMixin:
    """A ``ModelAdmin`` whose search box asks ``search_index``, a SearchIndex of the model, for its best 1,000 rows.

    ``search_fields`` must be set: Django shows the box only then. It searches in these fields while the index can't
    answer. The rows come in the order of the change list.
    """

    search_index: Any

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """See ModelAdmin.get_search_results()."""
        if search_term.strip():
            result = self.search_index.search(search_term, limit=MAX_HITS)
            if result.source == "index":
                return queryset.filter(pk__in=result.ids), False
        return super().get_search_results(request, queryset, search_term)  # type: ignore[misc,no-any-return]
