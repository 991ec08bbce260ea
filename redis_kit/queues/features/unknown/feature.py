"""Unknown tasks: jobs that not every worker can run, as in a rolling deploy, wait for one that can."""

from collections.abc import Iterable

from redis_kit.queues.engine.feature import Duty, Feature, Supervision


class UnknownTasks(Feature):
    """A worker returns the jobs that it can't run, and recalls those that others returned and it can run."""

    name = "unknown"
    parts = ("unfit",)
    route = ("redis_kit.queues.features.unknown.middleware.UnknownCalls",)

    def duties(self, supervisor: Supervision) -> Iterable[Duty]:
        """Return the one that recalls jobs."""
        from redis_kit.queues.features.unknown.recall import Recall

        return (Recall(supervisor.wake_children),)
