"""The tables of the queues in the project's database. A module of its own: models can't be imported before the apps."""

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _


class OnceKey(models.Model):
    """A key of once(), stored in the transaction of its block. ``digest`` stands for it: no collation changes that."""

    digest = models.CharField(max_length=64, primary_key=True)
    key = models.CharField(max_length=255)
    created = models.DateTimeField(default=now)
    expires = models.DateTimeField(null=True, db_index=True)
    result = models.TextField(default="")  # as JSON; empty if there is none

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = _("key of once()")
        verbose_name_plural = _("keys of once()")

    def __str__(self) -> str:
        return self.key
