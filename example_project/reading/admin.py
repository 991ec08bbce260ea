"""The reading room's models in the admin, beside the dashboard."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from example_project.reading.models import Article, ArticleIndex, Letter, Report, User
from redis_kit.search.admin import SearchAdminMixin

admin.site.register(User, UserAdmin)


@admin.register(Article)
class ArticleAdmin(SearchAdminMixin, admin.ModelAdmin):
    """Articles in their order, with a search box that asks their index."""

    list_display = ("title", "position", "votes")
    search_fields = ("title", "body")
    search_index = ArticleIndex


@admin.register(Letter)
class LetterAdmin(admin.ModelAdmin):
    """Letters, with their due and arrival times."""

    list_display = ("kind", "article", "reader", "due_at", "arrived_at")
    list_select_related = ("article", "reader")


@admin.register(Report)
class ReportAdmin(admin.ModelAdmin):
    """Reports and their builders."""

    list_display = ("started_at", "finished_at", "builder")
