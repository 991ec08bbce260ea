"""The table of days. A module of its own: models can't be imported before the apps."""

from django.db import models

from redis_kit.core.fields import ExactCharField


class SignInDay(models.Model):
    """A day of one instance of a model: a sign-in, or a day that was made up or frozen."""

    id = models.BigAutoField(primary_key=True)
    label = models.CharField(max_length=200)
    object_id = ExactCharField(max_length=255)
    day = models.DateField()
    kind = models.CharField(max_length=10, default="sign_in")  # or make_up, or freeze

    class Meta:
        app_label = "redis_kit"
        default_permissions = ()
        verbose_name = "day of a sign-in"
        verbose_name_plural = "days of sign-ins"
        constraints = [models.UniqueConstraint(fields=["label", "object_id", "day"], name="redis_kit_signinday_unique")]

    def __str__(self) -> str:
        return f"{self.label} {self.object_id}: {self.day}"
