"""A view that answers select2 and other widgets of forms."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, JsonResponse
from django.views import View

from redis_kit.autocomplete.index import LIMIT
from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete

PAGE = 20


class AutocompleteView(View):
    """Answer ``?term=...&page=...`` with the JSON that Django's admin and select2 read, at most 100 rows.

    Use it as ``AutocompleteView.as_view(index=authors)``. As in the admin, the user needs the permission to view the
    model, or to change it. If the index can't answer, the database does.
    """

    index: Any = None

    def get_scope(self, request: HttpRequest) -> Any:
        """Return the scope that this user may search. A view for an index with scopes must say so."""
        if self.index.scope is not None:
            raise ImproperlyConfigured(f"{type(self).__name__} must define get_scope(): {self.index!r} has scopes.")

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may search."""
        meta = self.index.model._meta
        return any(request.user.has_perm(f"{meta.app_label}.{verb}_{meta.model_name}") for verb in ("view", "change"))

    def get(self, request: HttpRequest) -> JsonResponse:
        """Return a page of results."""
        if not self.has_permission(request):
            raise PermissionDenied
        text, page = request.GET.get("term", ""), request.GET.get("page", "")
        number = min(int(page), LIMIT[1] // PAGE) if page.isdecimal() and 0 < len(page) < 9 and int(page) else 1
        limit = min(number * PAGE + 1, LIMIT[1])
        scope = self.get_scope(request)
        hits = self.index.search(text, limit, scope=scope)
        pairs = self._read(text, limit, scope) if hits is None else [(hit.id, hit.text) for hit in hits]
        results = [{"id": id, "text": text} for id, text in pairs[(number - 1) * PAGE : number * PAGE]]
        return JsonResponse({"results": results, "pagination": {"more": len(pairs) > number * PAGE}})

    def _read(self, text: str, limit: int, scope: Any) -> list[tuple[str, str]]:
        """Ask the database, as the admin does. Rows of a scope that a function names are not found there."""
        index: ModelAutocomplete = self.index
        rows = index.rows().order_by(*index.text_fields)
        if index.scope is not None:
            rows = rows.filter(**{index.scope: scope}) if isinstance(index.scope, str) else rows.none()
        for word in text.replace("\0", " ").split()[:16]:
            matches = [Q(**{f"{name}__icontains": word}) for name in index.text_fields]
            rows = rows.filter(Q(*matches, _connector=Q.OR))
        return [(str(row.pk), index.text_of(row)) for row in rows[:limit]]
