"""Actions on users in the admin: their days as CSV, and yesterday made up."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.errors import RedisKitError
from redis_kit.core.values.csv_rows import CSVWriter
from redis_kit.signins.days import today
from redis_kit.signins.errors import NoneLeft
from redis_kit.signins.mixin import SignInMixin

MOST_EXPORTED, MOST_MADE_UP = 10_000, 1000  # users


@admin.action(description=gettext_lazy("Export sign-ins as CSV"), permissions=["view"])
def export_sign_ins(model_admin: Any, request: Any, queryset: Any) -> HttpResponse | None:
    """Return the days of the chosen users as a file: id, day and kind. Two queries and a round trip for 100 users."""
    from redis_kit.signins.database.record import Rebuild

    advice = _("manage.py rk_signins export takes any number.")
    if not _are_few(model_admin, request, queryset, MOST_EXPORTED, advice):
        return None
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="sign-ins.csv"'
    writer = CSVWriter(response)
    writer.writerow(("id", "day", "kind"))
    ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
    try:
        for id, days in Rebuild(model_admin.model).days_of(ids):
            writer.writerows((id, day, kind) for day, kind in days)
    except RedisKitError as error:
        model_admin.message_user(request, str(error), messages.ERROR)
        return None
    return response


@admin.action(description=gettext_lazy("Make up yesterday's sign-in"), permissions=["change"])
def make_up_yesterday(model_admin: Any, request: Any, queryset: Any) -> None:
    """Make up yesterday, on the clock of each chosen user, with one of the month's make-ups. A round trip for each."""
    if not _are_few(model_admin, request, queryset, MOST_MADE_UP):
        return
    made_up = other = 0
    try:
        for user in queryset:
            if _made_up(user):
                made_up += 1
                model_admin.log_change(request, user, "made up yesterday's sign-in")
            else:
                other += 1
    except RedisKitError as error:
        model_admin.message_user(request, str(error), messages.ERROR)
    if made_up or other:
        text = _("Made up for %(made_up)d; %(other)d had signed in, or have no make-up left.")
        model_admin.message_user(request, text % {"made_up": made_up, "other": other})


class SignInAdminMixin:
    """Add both actions to the ``ModelAdmin`` of a model with SignInMixin; put it before ``ModelAdmin``."""

    actions: Any = (export_sign_ins, make_up_yesterday)  # as in ModelAdmin, for type checkers


def _made_up(user: Any) -> bool:
    try:
        return SignInMixin.make_up_sign_in(user, today(user) - timedelta(1)).new
    except NoneLeft:
        return False


def _are_few(model_admin: Any, request: Any, queryset: Any, most: int, advice: str = "") -> bool:
    if queryset.count() <= most:
        return True
    text = _("At most %d users can be chosen.") % most
    model_admin.message_user(request, f"{text} {advice}".rstrip(), messages.ERROR)
    return False
