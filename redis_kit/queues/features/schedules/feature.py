"""Schedules: tasks that run periodically, from code and from the database."""

from collections.abc import Iterable
from typing import Any

from django.db.models import signals

from redis_kit.queues import framework
from redis_kit.queues.engine.feature import Duty, Feature, Supervision


class Schedules(Feature):
    """Supervisors add the jobs of ticks. Rows of schedules are stored when they change."""

    name = "schedules"
    panels = ("redis_kit.queues.features.schedules.page.SchedulesPanel",) if framework.FOUND else ()

    def ready(self) -> None:
        """Have rows of schedules stored when they change."""
        from redis_kit.queues.models import Schedule

        signals.post_save.connect(_changed, sender=Schedule)
        signals.post_delete.connect(_changed, sender=Schedule)

    def register_admin(self, site: Any) -> None:
        """Register the schedules, if there are tasks."""
        from redis_kit.queues.models import Schedule

        if framework.FOUND:
            from redis_kit.queues.features.schedules.admin import ScheduleAdmin

            site.register(Schedule, ScheduleAdmin)

    def duties(self, supervisor: Supervision) -> Iterable[Duty]:
        """Return the scheduler; none with ``--burst``."""
        from redis_kit.queues.features.schedules.scheduler import Scheduler

        return () if supervisor.options.burst else (Scheduler(supervisor),)


def _changed(*, instance: Any, signal: Any, raw: bool = False, **kwargs: Any) -> None:
    if not raw:  # a fixture may be loaded before its table's other rows; workers store it within a minute
        from redis_kit.queues.features.schedules import control

        control.push(instance, deleted=signal is signals.post_delete)
