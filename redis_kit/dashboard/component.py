"""The dashboard's settings and its place among the components."""

from dataclasses import dataclass

from redis_kit.core.component import Component
from redis_kit.core.conf import Section


@dataclass(frozen=True)
class DashboardSettings(Section):
    """``REDIS_KIT["DASHBOARD"]``."""

    name = "DASHBOARD"
    ranges = {"REFRESH": (2, 60)}

    #: False takes the dashboard out of the admin: nobody sees it, its pages answer 403.
    ENABLED: bool = True
    #: Seconds between two refreshes of an open page, until its viewer chooses another pace.
    REFRESH: int = 5


class Dashboard(Component):
    """All components' figures in the Django admin."""

    settings = DashboardSettings
