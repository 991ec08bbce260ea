"""Results: what a call returned or raised, its progress, and the callers that wait for its end."""

from redis_kit.queues.engine.feature import Feature

FOLDER = "redis_kit.queues.features.results"


class Results(Feature):
    """The option ``store_result`` of tasks. The jobs of others have no history, and cost nothing here."""

    name = "results"
    parts = ("results", "endings")
    provides = {
        "results": f"{FOLDER}.calls",
        "result_step": f"{FOLDER}.store.get_result",
        "store_endings": f"{FOLDER}.store.store_endings",
        "recorders": f"{FOLDER}.recorder.recorders",
    }
    task = (f"{FOLDER}.recorder.Results",)
