"""The features of the queues, as dotted paths. This module imports nothing.

Middleware, panels and figures come in this order. A folder of functions alone, such as once(), has no line.
"""

FEATURES = (
    "redis_kit.queues.features.statistics.feature.Statistics",
    "redis_kit.queues.features.handover.feature.HandOvers",
    "redis_kit.queues.features.unknown.feature.UnknownTasks",
    "redis_kit.queues.features.unique.feature.UniqueKeys",
    "redis_kit.queues.features.cancel.feature.Cancellation",
    "redis_kit.queues.features.pause.feature.Pauses",
    "redis_kit.queues.features.limits.feature.Limits",
    "redis_kit.queues.features.schedules.feature.Schedules",
    "redis_kit.queues.features.workflows.feature.Workflows",
    "redis_kit.queues.features.at_most_once.feature.AtMostOnce",
    "redis_kit.queues.features.results.feature.Results",
    "redis_kit.queues.features.outbox.feature.Outbox",
    "redis_kit.queues.features.shards.feature.Shards",
    "redis_kit.queues.features.logs.feature.Logs",
    "redis_kit.queues.features.traces.feature.Traces",
    "redis_kit.queues.features.celery.feature.Celery",
)
