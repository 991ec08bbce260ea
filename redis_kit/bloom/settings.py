"""The settings of Bloom filters."""

from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class BloomSettings(Section):
    """The options of ``REDIS_KIT["BLOOM"]``."""

    name = "BLOOM"
    policies = {"open": "any value may be in a filter"}

    #: The connection of filters that name none.
    USING: str = "default"
    #: What ``contains()`` does while Redis is unavailable: it raises, or ``open`` answers that a value may be there.
    #: Methods that write raise. A ``ModelFilter`` never does: the database answers in its place.
    ON_FAILURE: Literal["raise", "open"] = "raise"
