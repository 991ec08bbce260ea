"""The features of the queues, as dotted paths. This module imports nothing."""

FEATURES = (
    "redis_kit.queues.features.schedules.feature.Schedules",
    "redis_kit.queues.features.workflows.feature.Workflows",
    "redis_kit.queues.features.celery.feature.Celery",
)
