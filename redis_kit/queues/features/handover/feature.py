"""Hand-over: jobs of a queue go to another system, by a sink."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.core.checks import CheckMessage, Error
from django.utils.module_loading import import_string

from redis_kit.queues.engine.feature import Feature


class HandOvers(Feature):
    """Middleware takes jobs off the chain whose queue, backend or message names a sink."""

    name = "handover"
    panels = ("redis_kit.queues.features.handover.page.HandOversPanel",)
    process_parts = dict.fromkeys(("worker", "test"), "redis_kit.queues.features.handover.routes.Routes")
    route = ("redis_kit.queues.features.handover.routes.HandOver",)

    def checks(self) -> Iterator[CheckMessage]:
        """Yield each option that names something else than a sink; what does not exist is reported beside it."""
        from redis_kit.queues.tasks import discovery
        from redis_kit.queues.worker.run.sink import Sink

        for option, path in discovery.paths_of_sinks().items():
            kind: Any = Sink
            with suppress(Exception):  # its module may need a package that only workers have
                kind = import_string(path)
            if not (isinstance(kind, type) and issubclass(kind, Sink)):
                wrong = f"{option} is {path!r}, which is not a subclass of redis_kit.queues.Sink."
                yield Error(wrong, id="redis_kit.E017")
