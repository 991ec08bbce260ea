"""A page of the dashboard about one queue, which the viewer chooses."""

from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import MOST_ROWS, Content, Field, Panel
from redis_kit.queues.panels.panels import LONGEST_CHOICE


class OneQueuePanel(Panel):
    """Its search has the field ``queue``. Without a choice it shows the first queue."""

    def summary(self) -> tuple[Content, ...]:
        """Return nothing: the page of queues has a summary."""
        return ()

    def queue(self) -> str:
        """Return the name of the queue. One round trip for the whole page. Raises InvalidValue for an unknown one."""
        queue = self.asked("queue") or next(iter(self._names), "")
        if queue not in self._names:
            raise InvalidValue(_("There is no queue %(queue)s.") % {"queue": queue})
        return queue

    def asked(self, field: str) -> str:
        """Return what the viewer asked for."""
        return self.viewer.asked.get(field, "").strip()

    @property
    def queue_field(self) -> Field:
        """Return the field of the search."""
        return Field("queue", gettext_lazy("Queue"), self._choices)

    @cached_property
    def _names(self) -> list[str]:
        from redis_kit.queues.monitoring.stats import queue_names

        return queue_names()

    def _choices(self) -> list[str]:
        return [name for name in self._names[:MOST_ROWS] if name.isprintable() and len(name) <= LONGEST_CHOICE]
