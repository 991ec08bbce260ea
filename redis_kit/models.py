"""The models of the app, in the module where Django looks for them."""

from redis_kit.dashboard.models import Dashboard
from redis_kit.pageviews.database.models import PageViewSnapshot
from redis_kit.queues.models import OnceKey, OutboxMessage, Schedule
from redis_kit.signins.database.models import SignInDay

__all__ = ["Dashboard", "OnceKey", "OutboxMessage", "PageViewSnapshot", "Schedule", "SignInDay"]
