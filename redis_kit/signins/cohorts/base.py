"""The base of what is asked about all instances of a model."""

from typing import Any

from redis_kit.core import conf
from redis_kit.core.primitive import Primitive
from redis_kit.signins import keys
from redis_kit.signins.settings import SignInSettings


class SignInModel(Primitive):
    """A model whose instances sign in."""

    component, settings = "signins", SignInSettings

    def __init__(self, model: Any) -> None:
        super().__init__(keys.label(model), using=conf.section(SignInSettings).USING)
        self.model = model
