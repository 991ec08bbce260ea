"""A model without a table: it gives the dashboard its place in the admin, its permissions and its log entries."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Dashboard(models.Model):
    """A page of the dashboard, as the admin's log names it. Never stored."""

    slug = models.CharField(max_length=200, primary_key=True)
    title = models.CharField(max_length=200)

    class Meta:
        app_label = "redis_kit"
        managed = False
        default_permissions = ()
        verbose_name = _("dashboard")
        verbose_name_plural = _("Dashboard")
        # Kept in the database at migration, in English like Django's own.
        permissions = [
            ("view_dashboard", "Can view the Redis dashboard"),
            ("manage_queues", "Can manage queues and their jobs"),
            ("release_locks", "Can release locks that others hold"),
            ("change_limits", "Can change the limits of semaphores"),
            ("reset_throttles", "Can reset and change throttles"),
            ("view_identities", "Can see identities unmasked"),
        ]

    def __str__(self) -> str:
        return self.title
