"""Sign-ins as a component."""

from redis_kit.core.component import Component
from redis_kit.signins.settings import SignInSettings


class SignIns(Component):
    """Daily sign-ins: streaks, calendars, milestones."""

    settings = SignInSettings
    panels = ("redis_kit.signins.panel.SignInsPanel",)
    metrics = ("redis_kit.signins.metrics.SignInMetrics",)
