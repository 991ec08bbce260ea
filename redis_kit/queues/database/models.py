"""The tables of the queues in the project's database. A module of its own: models can't be imported before the apps."""

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _


class OutboxMessage(models.Model):
    """A call that was enqueued in the transaction of this row, until Redis has it. ``due`` is in ms since 1970."""

    created = models.DateTimeField(default=now)
    queue = models.CharField(max_length=512)
    job = models.CharField(max_length=2000)
    body = models.TextField()
    priority = models.SmallIntegerField(default=0)
    due = models.BigIntegerField(default=0)
    unique_key = models.CharField(max_length=64)
    unique_until = models.CharField(max_length=20)
    replace = models.BooleanField(default=False)

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = _("message of the outbox")
        verbose_name_plural = _("messages of the outbox")

    def __str__(self) -> str:
        return f"{self.queue}: {self.job}"


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
