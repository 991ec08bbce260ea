"""The dashboard's page about sign-ins."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.panels import Bars, Content, Figure, Panel, Table
from redis_kit.signins import discovery
from redis_kit.signins.cohorts.activity import Activity
from redis_kit.signins.days import today

DAYS = 14
NO_MODEL = gettext_lazy(
    "No model counts sign-ins. Add SignInMixin to the user model: class User(SignInMixin, AbstractUser). If "
    "the site already uses Django's User, add a proxy model: class Customer(SignInMixin, User) with proxy = True in "
    "its Meta. Then call sign_in() when a user is here, since logging in does not count by itself."
)


class SignInsPanel(Panel):
    """The number of users who signed in, today and on the days before."""

    slug = "signins"
    title = gettext_lazy("Sign-ins")

    def content(self) -> Iterator[Content]:
        """Return the content, in one round trip for each model that can sign in."""
        models = discovery.models()
        for model in models:
            yield from self._about(model)
        if not models:
            yield Table(_("Sign-ins by day"), (), [], empty=NO_MODEL)

    def _about(self, model: Any) -> Iterator[Content]:
        last, name = today(), model._meta.verbose_name_plural
        active_days = Activity(model).daily_active(last - timedelta(DAYS - 1), last)
        yield Figure(_("Signed in today: %(name)s") % {"name": name}, active_days[-1].users)
        yield Figure(_("Signed in yesterday: %(name)s") % {"name": name}, active_days[-2].users)
        bars = [(date_format(day.day, "MONTH_DAY_FORMAT"), day.users) for day in active_days]
        yield Bars(_("Signed in by day: %(name)s") % {"name": name}, bars)
