"""The models that can sign in."""

from typing import Any

from django.apps import apps

from redis_kit.signins import keys
from redis_kit.signins.mixin import SignInMixin


def models() -> list[Any]:
    """Return the models that can sign in. Models that share their sign-ins are one: if possible, not a proxy."""
    by_label: dict[str, Any] = {}
    for model in sorted(apps.get_models(), key=lambda model: model._meta.proxy):
        if issubclass(model, SignInMixin):
            by_label.setdefault(keys.label(model), model)
    return list(by_label.values())
