"""The admin of snapshots. Imports no Redis client, because Django imports it at start-up."""

from typing import Any
from urllib.parse import unquote

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import encode
from redis_kit.pageviews.database.models import PageViewSnapshot


class PageViewSnapshotAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # has no parameters at run time
    """Periods that are over, to read, for users who may see the dashboard."""

    list_display = ("page_name", "key_name", "period", "start", "views", "visitors", "distinct", "bots")
    list_filter = ("period",)
    list_per_page = 100
    date_hierarchy = "start"
    search_fields = ("page", "key")
    ordering = ("-start", "-views")
    show_full_result_count = False
    fields = list_display

    def has_module_permission(self, request: Any) -> bool:
        """Return whether the user may see the dashboard."""
        return bool(request.user.has_perm("redis_kit.view_dashboard"))

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        """Return whether the user may see the dashboard."""
        return self.has_module_permission(request)

    def has_add_permission(self, request: Any, obj: Any = None) -> bool:
        """Return False: rows come from Redis."""
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Return the rows whose page or key has each word of a search, as these are shown."""
        try:
            words = " ".join(map(encode, search_term.split()))
        except InvalidName:  # no name is that long
            return queryset.none(), False
        return super().get_search_results(request, queryset, words)

    @admin.display(description=_("page"), ordering="page")
    def page_name(self, row: PageViewSnapshot) -> str:
        """Return the name of the page."""
        return unquote(row.page)

    @admin.display(description=_("key"), ordering="key")
    def key_name(self, row: PageViewSnapshot) -> str:
        """Return the key of the object."""
        return unquote(row.key)
