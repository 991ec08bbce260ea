"""The table of days. A module of its own: models can't be imported before the apps."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from redis_kit.core.fields import ExactCharField


class SignInDay(models.Model):
    """A day of one instance of a model: a sign-in, or a day that was made up or frozen."""

    class Kind(models.TextChoices):
        """How the day came about."""

        SIGN_IN = "sign_in", _("sign-in")
        MAKE_UP = "make_up", _("made up")
        FREEZE = "freeze", _("frozen")

    id = models.BigAutoField(primary_key=True)
    label = models.CharField(max_length=200)
    object_id = ExactCharField(max_length=255)
    day = models.DateField()
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SIGN_IN)

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = _("day of a sign-in")
        verbose_name_plural = _("days of sign-ins")
        constraints = [models.UniqueConstraint(fields=["label", "object_id", "day"], name="redis_kit_signinday_unique")]

    def __str__(self) -> str:
        return f"{self.label} {self.object_id}: {self.day}"
