"""Here because Django looks here."""

from redis_kit.dashboard.models import Dashboard

__all__ = ["Dashboard"]
