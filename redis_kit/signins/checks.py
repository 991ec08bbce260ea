"""The system check of the attribute that holds the time zone of a user."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.core.exceptions import FieldDoesNotExist

from redis_kit.core import conf
from redis_kit.core.text import did_you_mean
from redis_kit.signins.mixin import models
from redis_kit.signins.settings import REMEDY, SignInSettings, not_an_attribute


def messages() -> Iterator[CheckMessage]:
    """Yield a warning if the attribute of ``TIMEZONE`` is missing in all models that sign in."""
    where = conf.valid_options(SignInSettings).TIMEZONE
    if not isinstance(where, str) or not_an_attribute(where):
        return
    missing = [_missing(model, where) for model in models()]
    if missing and all(missing):
        model, name = missing[0]
        yield Warning(
            f"REDIS_KIT['SIGNINS']['TIMEZONE'] is {where!r}, but {model._meta.label} has no attribute {name!r}.",
            hint=did_you_mean(name, [field.name for field in model._meta.get_fields()], REMEDY),
            id="redis_kit.W030",
        )


def _missing(model: Any, path: str) -> Any:
    """Follow a dotted attribute through relations, and return the model and the name that it lacks, or None."""
    for name in path.split("."):
        if not hasattr(model, name):
            return model, name
        try:
            model = model._meta.get_field(name).related_model
        except FieldDoesNotExist:
            return None  # a property, say
        if model is None:
            return None
    return None
