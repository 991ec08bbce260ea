"""The table of closed periods. A module of its own: models can't be imported before the apps."""

import hashlib
from urllib.parse import unquote

from django.db import models
from django.utils.translation import gettext_lazy as _

from redis_kit.core.fields import ExactTextField


class PageViewSnapshot(models.Model):
    """The views and visitors of a page, an object or the site in one day, week or month that is over.

    ``page`` and ``key`` are encoded as in the names of keys. ``digest`` stands for both: no collation changes that.
    """

    class Period(models.TextChoices):
        """The kinds of periods."""

        DAY = "day", _("day")
        WEEK = "week", _("week")
        MONTH = "month", _("month")

    id = models.BigAutoField(primary_key=True)
    period = models.CharField(_("period"), max_length=5, choices=Period.choices)
    start = models.DateField(_("start"))
    digest = models.CharField(max_length=32)
    page = ExactTextField(_("page"))
    key = ExactTextField(_("key"), blank=True)
    views = models.PositiveBigIntegerField(_("views"))
    visitors = models.PositiveBigIntegerField(_("visitors"))
    distinct = models.BooleanField(
        _("distinct visitors"), default=False, help_text=_("If not, a visitor may count more than once in the period.")
    )
    bots = models.PositiveBigIntegerField(_("requests of bots"))

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = _("snapshot of page views")
        verbose_name_plural = _("snapshots of page views")
        constraints = [
            models.UniqueConstraint(fields=["digest", "period", "start"], name="redis_kit_snapshot_of_period")
        ]
        indexes = [models.Index(fields=["period", "start"], name="redis_kit_snapshot_start")]

    def __str__(self) -> str:
        return f"{unquote(self.page)} {unquote(self.key)}: {self.period} {self.start}"


def digest_of(name: str) -> str:
    """Return what stands for the encoded name of a page, an object or the site in the table."""
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
