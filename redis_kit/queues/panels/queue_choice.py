"""A page of the dashboard about all queues, or about the one that the viewer chooses."""

from collections.abc import Sequence
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import MOST_ROWS, Content, Field, Panel
from redis_kit.queues.panels.panels import LONGEST_CHOICE


class QueueChoicePanel(Panel):
    """Its search has the field ``queue``. Without a choice it is about all queues."""

    def summary(self) -> tuple[Content, ...]:
        """Return nothing: the page of queues has a summary."""
        return ()

    def queue(self) -> str:
        """Return the name of the chosen queue, "" for all. Raises InvalidValue for an unknown one."""
        queue = self.asked("queue")
        if queue and queue not in self.names:
            raise InvalidValue(_("There is no queue %(queue)s.") % {"queue": queue})
        return queue

    def asked(self, field: str) -> str:
        """Return what the viewer asked for."""
        return self.viewer.asked.get(field, "").strip()

    def choices(self, names: Sequence[str]) -> list[str]:
        """Return the first names that a form can show."""
        return [name for name in names[:MOST_ROWS] if name.isprintable() and len(name) <= LONGEST_CHOICE]

    @property
    def queue_field(self) -> Field:
        """Return the field of the search."""
        return Field(
            "queue",
            gettext_lazy("Queue"),
            lambda: self.choices(self.names),
            any=gettext_lazy("All queues"),
            optional=True,
        )

    @cached_property
    def names(self) -> list[str]:
        """Return the names of all queues. One round trip for the whole page."""
        from redis_kit.queues.monitoring.stats import queue_names

        return queue_names()
