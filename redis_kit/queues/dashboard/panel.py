"""What the pages about queues share: the choice of a queue, and buttons that need the permission to manage them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import methodcaller
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.panels import MOST_ROWS, Content, Field, Pages, Panel, Table, action, target_action
from redis_kit.queues.dashboard import actions
from redis_kit.queues.dashboard.actions import JobSelection
from redis_kit.queues.engine.enqueue import MOST_NAMES
from redis_kit.queues.reports.stats import queue_names

MANAGE = "redis_kit.manage_queues"
button = partial(action, permission=MANAGE, asks=None)
target_button = partial(target_action, permission=MANAGE)


def job_button(action: str, label: Any, *, confirm: bool = True, **options: Any) -> Any:
    """Return a button for jobs. To be confirmed, it tells what will happen."""
    run = methodcaller("change", action)
    explained = action if confirm else ""
    return target_button(JobSelection.parse, run, label, confirm=confirm, explained=explained, **options)


def hidden() -> Table:
    """Return what a viewer is told who follows a link and may not manage queues."""
    text = _("The pages of single queues, jobs and workflows need the permission to manage queues.")
    return Table(_("Looked up"), (), [], empty=text)


class QueueChoicePanel(Panel):
    """Its search has the field ``queue``. Without a choice it is about all queues."""

    def summary(self) -> tuple[Content, ...]:
        """Return nothing: the page of queues has a summary."""
        return ()

    def queue(self) -> str:
        """Return the name of the chosen queue, "" for all. Raises InvalidValue for an unknown one."""
        queue = self.asked("queue")
        if queue and queue not in self.names:
            raise InvalidValue(actions.unknown_queue(queue, self.names))
        return queue

    def choices(self, field: str, names: Sequence[str]) -> list[str]:
        """Return the first names, and the one that the viewer chose, as far as a form can show them."""
        chosen = [name for name in names if name == self.asked(field)]
        return [name for name in dict.fromkeys([*names[:MOST_NAMES], *chosen]) if name.isprintable()]

    def page_of(
        self,
        by_queue: Mapping[str, Any],
        *,
        busy: Callable[[Any], bool],
        asked: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[dict[str, Any], Iterator[Pages]]:
        """Return the queues of this page, and the links to the others. With several pages, busy queues come first."""
        number, total = self.viewer.page, len(by_queue)
        names = sorted(by_queue, key=lambda name: total > MOST_ROWS and not busy(by_queue[name]))
        shown = names[(number - 1) * MOST_ROWS : number * MOST_ROWS]
        return {name: by_queue[name] for name in shown}, Pages.of(self.slug, number, total, asked)

    @property
    def queue_field(self) -> Field:
        """Return the field of the search."""
        return Field("queue", _("Queue"), lambda: self.choices("queue", self.names), any=_("All queues"), optional=True)

    @property
    def names(self) -> list[str]:
        """Return the names of all queues. One round trip for the whole page, also if it fails."""
        if isinstance(self._names, RedisKitError):
            raise self._names
        return self._names

    @cached_property
    def _names(self) -> list[str] | RedisKitError:
        try:
            return queue_names()
        except RedisKitError as error:
            return error  # content() raises it; the form above does not ask again
