"""The tables of the queues in the project's database. A module of its own: models can't be imported before the apps."""

from typing import Any, Self

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from redis_kit.core.fields import ExactCharField, ExactTextField


class OutboxMessage(models.Model):
    """A call that was enqueued in the transaction of this row, until Redis has it for sure.

    ``sent`` is when Redis got it, and ``due`` is in ms since 1970.
    """

    created = models.DateTimeField(default=now)
    sent = models.DateTimeField(null=True)
    queue = models.CharField(max_length=512)
    job = models.CharField(max_length=2000)
    body = ExactTextField()
    priority = models.SmallIntegerField(default=0)
    due = models.BigIntegerField(default=0)
    unique_key = models.CharField(max_length=64)
    unique_until = models.CharField(max_length=20)
    replace = models.BooleanField(default=False)
    lane = ExactTextField(default="")

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
    key = ExactCharField(max_length=255)
    created = models.DateTimeField(default=now)
    expires = models.DateTimeField(null=True, db_index=True)
    result = ExactTextField(default="")  # as JSON; empty if there is none

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = _("key of once()")
        verbose_name_plural = _("keys of once()")

    def __str__(self) -> str:
        return str(self.key)


class Schedule(models.Model):
    """A schedule of its own, or, with the name of one in the code, what is different from the code."""

    class Kind(models.TextChoices):
        """The system that runs the task."""

        TASK = "task", _("task of this project")
        CELERY = "celery", _("task of Celery")

    class Overlap(models.TextChoices):
        """The effect of an earlier job that waits or runs."""

        SKIP = "skip", _("skip the tick")
        QUEUE_ONE = "queue_one", _("run it after the running job")
        ALLOW = "allow", _("run it beside the running job")

    #: The name in the table, "" for a new row: a schedule that gets another name ends under this one.
    stored_name = ""

    id = models.BigAutoField(primary_key=True)
    name = ExactCharField(
        _("name"),
        max_length=200,
        unique=True,
        help_text=_("The name of a schedule in the code changes that one. Empty fields: as in the code."),
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.TASK)
    task = models.CharField(
        _("task"), max_length=300, blank=True, help_text=_("Its dotted path, such as shop.tasks.report.")
    )
    args = models.JSONField(_("positional arguments"), null=True, blank=True, help_text=_("A list, such as [1, 2]."))
    kwargs = models.JSONField(
        _("keyword arguments"), null=True, blank=True, help_text=_('An object, such as {"n": 1}.')
    )
    queue = models.CharField(_("queue"), max_length=200, blank=True, help_text=_("Empty: that of the task."))
    every = models.FloatField(_("every (seconds)"), null=True, blank=True)
    cron = models.CharField(
        _("cron"), max_length=200, blank=True, help_text=_("Minute, hour, day, month, weekday: 0 4 * * * is 04:00.")
    )
    timezone = models.CharField(
        _("time zone"), max_length=100, blank=True, help_text=_("Of cron, such as Europe/Berlin. Empty: TIME_ZONE.")
    )
    at = models.DateTimeField(_("once at"), null=True, blank=True)
    overlap = models.CharField(_("overlap"), max_length=10, choices=Overlap.choices, blank=True)
    catch_up = models.PositiveSmallIntegerField(
        _("missed ticks to run"), null=True, blank=True, help_text=_("0 for none, 1 for the last one. Empty: 1.")
    )
    jitter = models.FloatField(_("jitter (seconds)"), null=True, blank=True)
    start = models.DateTimeField(_("start"), null=True, blank=True)
    end = models.DateTimeField(_("end"), null=True, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    changed = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        app_label = "redis_kit"
        ordering = ("name",)
        verbose_name = _("schedule")
        verbose_name_plural = _("Schedules")

    def __str__(self) -> str:
        return str(self.name)

    @classmethod
    def from_db(cls, *args: Any, **options: Any) -> Self:
        """Return the instance of a row, which keeps its name as ``stored_name``."""
        row = super().from_db(*args, **options)
        row.stored_name = row.__dict__.get("name", "")
        return row

    def given(self) -> dict[str, Any]:
        """Return the fields that say something, by the names of periodic()'s arguments."""
        names = ("task", "args", "kwargs", "queue", "every", "cron", "timezone", "at", "overlap", "catch_up", "jitter")
        values = {name: getattr(self, name) for name in (*names, "start", "end")}
        return {name: value for name, value in values.items() if value is not None and value != ""}
