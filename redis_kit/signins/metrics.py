"""The metrics of sign-ins."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.keys import encode
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.signins import keys, mixin
from redis_kit.signins.activity import by_day
from redis_kit.signins.days import today
from redis_kit.signins.settings import SignInSettings

USERS = Metric("redis_kit_sign_ins_today", "gauge", "Users who signed in today.", ("model",))


class SignInMetrics(MetricSource):
    """The users who signed in today, of each model."""

    metrics = (USERS,)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        if using != conf.section(SignInSettings).USING:
            return []
        labels = sorted(map(keys.label, mixin.models()))[:limit]
        days = yield from gather([by_day(encode(label), [today()]) for label in labels])
        return [USERS.sample(day.users, label) for label, (day,) in zip(labels, days, strict=True)]
