"""The throttling component: its options and its panel."""

from dataclasses import dataclass
from typing import Literal

from redis_kit.core.component import Component
from redis_kit.core.conf import Section


@dataclass(frozen=True)
class ThrottleSettings(Section):
    """Options of all throttles."""

    name = "THROTTLING"
    ranges = {"REMEMBER": (0, 1), "PROCESSES": (1, 10_000)}

    #: ``False`` admits every call without asking the server, for a project's own tests.
    ENABLED: bool = True
    #: What a throttle answers while the server is away, where it has no ``on_failure`` of its own.
    ON_FAILURE: Literal["open", "closed", "local"] = "open"
    #: Seconds for which a process refuses by itself what the server refused, at most.
    REMEMBER: float = 1.0
    #: How many processes share a limit out among them under the policy ``local``.
    PROCESSES: int = 1


class Throttling(Component):
    """Limits on how often something may happen."""

    settings = ThrottleSettings
    panels = ("redis_kit.throttling.panel.ThrottlesPanel",)
