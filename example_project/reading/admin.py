"""The reading room's models in the admin, beside the dashboard."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from example_project.reading.models import Article, ArticleIndex, Author, Letter, Report, User
from redis_kit.autocomplete.admin import AutocompleteAdminMixin
from redis_kit.search.admin import SearchAdminMixin

admin.site.register(User, UserAdmin)


@admin.register(Author)
class AuthorAdmin(AutocompleteAdminMixin, admin.ModelAdmin):
    """Authors by name. The field of an article finds them without the database."""

    search_fields = ("name",)


@admin.register(Article)
class ArticleAdmin(SearchAdminMixin, admin.ModelAdmin):
    """Articles in their order, with a search box that asks their index."""

    list_display = ("title", "author", "position", "votes")
    list_select_related = ("author",)
    autocomplete_fields = ("author",)
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
