"""The models of the app, in the module where Django looks for them."""

from redis_kit.dashboard.models import Dashboard

__all__ = ["Dashboard"]
