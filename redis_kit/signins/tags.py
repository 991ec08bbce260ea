"""The calendar as a template tag: ``{% load redis_kit_signins %}{% sign_in_calendar user year month %}``."""

from typing import Any

from django import template
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR

from redis_kit.core.dates import first_weekday
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.signins.days import today
from redis_kit.signins.errors import log_repeated_failure

register = template.Library()


@register.inclusion_tag("redis_kit/signins/calendar.html")
def sign_in_calendar(user: Any, year: int | None = None, month: int | None = None) -> dict[str, Any]:
    """Show a month of a user's sign-ins, by default the current one; nothing for an anonymous user."""
    if getattr(user, "pk", None) is None:
        return {}
    if not hasattr(user, "sign_in_calendar"):
        name = user._meta.label if hasattr(user, "_meta") else type(user).__name__
        raise TypeError(
            f"The tag sign_in_calendar needs a user of a model with SignInMixin, and {name} lacks it. "
            "If a proxy model has the mixin, give the tag an object of that model: Customer.objects.get(pk=user.pk)."
        )
    try:
        now = today(user)
    except InvalidValue as error:  # a zone that a user mistyped must not take the pages away that show a calendar
        log_repeated_failure("a calendar was not shown", error)
        return {"is_unavailable": True}
    try:
        calendar = user.sign_in_calendar(year or now.year, month or now.month)
    except RedisFailure:
        return {"is_unavailable": True}
    first = first_weekday()
    names = [(WEEKDAYS[day % 7], WEEKDAYS_ABBR[day % 7]) for day in range(first, first + 7)]
    return {"calendar": calendar, "weekdays": names, "weeks": calendar.weeks(first_weekday=first)}
