"""The dashboard's settings."""

from dataclasses import dataclass

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class DashboardSettings(Section):
    """``REDIS_KIT["DASHBOARD"]``."""

    name = "DASHBOARD"
    ranges = {"REFRESH": (2, 60)}

    #: False removes the dashboard from the admin: no user sees it, and its pages answer 403.
    ENABLED: bool = True
    #: Seconds between two refreshes of an open page, until its viewer chooses another interval.
    REFRESH: int = 5
