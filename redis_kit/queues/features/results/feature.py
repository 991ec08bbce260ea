"""Results: what a call returned or raised, its progress, and the callers that wait for its end."""

from redis_kit.queues.engine.feature import Feature


class Results(Feature):
    """The option ``store_result`` of tasks. The jobs of others have no history, and cost nothing here."""

    name = "results"
    parts = ("results", "endings")
    results = "redis_kit.queues.features.results.store"
    task = ("redis_kit.queues.features.results.middleware.Results",)
