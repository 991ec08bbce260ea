"""Results: what a call returned or raised, its progress, and the callers that wait for its end."""

from typing import Any

from redis_kit.queues.engine.feature import Feature


class Results(Feature):
    """The option ``store_result`` of tasks. The jobs of others have no history, and cost nothing here."""

    name = "results"
    parts = ("results", "endings")
    stores_results = True
    task = ("redis_kit.queues.features.results.recorder.Results",)

    def recorders(self) -> Any:
        """Return a function that returns the recorder of a job of a queue; None if no result of it is stored."""
        from redis_kit.queues.features.results.recorder import recorders

        return recorders()

    def results_of(self, backend: Any) -> Any:
        """Return the results of a backend."""
        from redis_kit.queues.features.results.calls import StoredResults

        return StoredResults(backend)

    def get_result(self, base: str, id: str) -> Any:
        """Return the step that reads the result of a call. Its reply begins with the status."""
        from redis_kit.queues.features.results.store import get_result

        return get_result(base, id)

    def store_endings(self, queue: Any) -> Any:
        """Return the flow that stores the results of jobs that ended without their worker."""
        from redis_kit.queues.features.results.store import store_endings

        return store_endings(queue)
