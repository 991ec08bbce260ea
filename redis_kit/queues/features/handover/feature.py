"""Hand-over: jobs of a queue go to another system, by a sink."""

from redis_kit.queues.engine.feature import Feature, Process, ProcessPart


class HandOvers(Feature):
    """Middleware takes jobs off the chain whose queue, backend or message names a sink."""

    name = "handover"
    panels = ("redis_kit.queues.features.handover.page.HandOversPanel",)
    route = ("redis_kit.queues.features.handover.middleware.HandOver",)

    def process_part(self, process: Process) -> ProcessPart | None:
        """Return the routes to sinks; a job that Celery runs has come to where it runs."""
        from redis_kit.queues.features.handover.routes import Routes, sinks_of_backends

        return None if process.kind == "celery" else Routes(process.sources, sinks_of_backends())
