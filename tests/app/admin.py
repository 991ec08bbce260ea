"""Models whose rows an author chooses among many."""

from django.contrib import admin

from redis_kit.autocomplete.admin import AutocompleteAdminMixin
from tests.app.models import Account, User


@admin.register(User)
class UserAdmin(AutocompleteAdminMixin, admin.ModelAdmin):
    search_fields = ["username"]
    ordering = ["username"]


@admin.register(Account)
class AccountAdmin(admin.ModelAdmin):
    autocomplete_fields = ["owner"]
