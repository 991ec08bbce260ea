"""Daily sign-ins of users, or of any model: streaks, calendars, milestones, and the number of active users."""

from redis_kit.signins.days import Calendar
from redis_kit.signins.errors import NoneLeft
from redis_kit.signins.mixin import SignInMixin
from redis_kit.signins.signals import signed_in

__all__ = ["Calendar", "NoneLeft", "SignInMixin", "signed_in"]
