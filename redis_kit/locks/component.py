"""What the kit has to know about locks and semaphores."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from django.core.checks import CheckMessage, Error
from django.utils.module_loading import import_string

from redis_kit.core.component import Component
from redis_kit.core.conf import Section, section


@dataclass(frozen=True)
class LockSettings(Section):
    """The options of ``REDIS_KIT["LOCKS"]``."""

    name = "LOCKS"
    ranges = {"TIMEOUT": (0.1, 86_400)}

    #: Length of a lease in seconds, where a lock or semaphore does not state its own.
    TIMEOUT: float = 30.0
    #: What happens while Redis is away.
    ON_FAILURE: Literal["raise", "closed"] = "raise"
    #: Dotted path of a function without arguments that says what the caller works on, such as the id of its request.
    #: It is asked each time a lock is taken, outside of queue jobs, and shown to others as part of the holder.
    HOLDER: str = ""


class Locks(Component):
    """Locks and semaphores."""

    settings = LockSettings
    panels = ("redis_kit.locks.dashboard.panel.LocksPanel",)

    def checks(self) -> Iterable[CheckMessage]:
        """Return an error where ``HOLDER`` names no function."""
        path = section(LockSettings).HOLDER
        try:
            found = callable(import_string(path)) if path else True
        except ImportError:
            found = False
        if not found:
            yield Error(f"REDIS_KIT['LOCKS']['HOLDER'] is {path!r}, which is no function.", id="redis_kit.E013")
