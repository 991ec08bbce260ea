"""A model without a table: it gives the dashboard its place in the admin, its permissions and its log entries."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import builtin_permissions


class Dashboard(models.Model):
    """A page of the dashboard, for entries of the admin's log. Never stored."""

    slug = models.CharField(max_length=200, primary_key=True)
    title = models.CharField(max_length=200)

    class Meta:
        app_label = "redis_kit"
        managed = False
        default_permissions = ()
        verbose_name = _("dashboard")
        verbose_name_plural = _("Dashboard")
        # Declared by each component; a migration stores them in the database.
        permissions = [*builtin_permissions()]

    def __str__(self) -> str:
        return self.title
