"""Hand-over: jobs of a queue go to another system, by a sink."""

import sys
from collections.abc import Iterator, Mapping

from django.core.checks import CheckMessage, Error

from redis_kit.core import conf
from redis_kit.queues.engine.feature import Feature, Process, ProcessPart
from redis_kit.queues.settings import QUEUE_OPTIONS, QueueSettings


class HandOvers(Feature):
    """Middleware takes jobs off the chain whose queue, backend or message names a sink."""

    name = "handover"
    panels = ("redis_kit.queues.features.handover.page.HandOversPanel",)
    route = ("redis_kit.queues.features.handover.middleware.HandOver",)

    def checks(self) -> Iterator[CheckMessage]:
        """Yield each option that names something else than a sink, if its module was imported."""
        from redis_kit.queues.worker.run.sink import Sink

        for queue, options in conf.valid_options(QueueSettings).QUEUE_OPTIONS.items():
            path = str(options.get("SINK", "")) if isinstance(options, Mapping) else ""
            module, _, name = path.rpartition(".")
            kind = getattr(sys.modules.get(module), name, None)
            if kind is not None and not (isinstance(kind, type) and issubclass(kind, Sink)):
                wrong = (
                    f"{QUEUE_OPTIONS}[{queue!r}]['SINK'] is {path!r}, which is not a subclass of redis_kit.queues.Sink."
                )
                yield Error(wrong, id="redis_kit.E017")

    def process_part(self, process: Process) -> ProcessPart | None:
        """Return the routes to sinks; a job that Celery runs has come to where it runs."""
        from redis_kit.queues.features.handover.routes import Routes, sinks_of_backends

        return None if process.kind == "celery" else Routes(process.sources, sinks_of_backends())
