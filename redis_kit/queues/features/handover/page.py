"""The page of jobs that are handed over to other systems, such as Celery."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.logs.masking import without_secrets
from redis_kit.core.panels import Content, Figure, Lines, Link, Panel, Table, Tile
from redis_kit.core.text import first_of
from redis_kit.queues.dashboard.job_page import moment
from redis_kit.queues.dashboard.queues_page import NAMED
from redis_kit.queues.features.handover.inspection import HandOvers, hand_overs, read_hand_overs, sinks_of_backends
from redis_kit.queues.reports.stats import queue_names
from redis_kit.queues.settings import QueueSettings, options_of
from redis_kit.queues.tasks import registry


class HandOversPanel(Panel):
    """The queues whose jobs other systems run: how many they took, and the last failure."""

    slug = "hand-overs"
    title = _("Hand-overs")

    def content(self) -> Iterator[Content]:
        """Yield figures and a row for each queue. Two round trips; none in a project without sinks."""
        if not _any_sink():
            yield Table(_("Hand-overs"), (), [], empty=_("No queue hands its jobs over to another system."))
            return
        counts = hand_overs(queue_names())
        rows_by_queue = sorted(counts.items())
        yield from _figures(counts)
        columns = (_("Queue"), _("To"), _("Handed over"), _("Last one"), _("Not taken"), _("Last failure"))
        rows = [
            (
                Link(name, "queues", {"queue": name}),
                count.to,
                count.sent,
                moment(count.sent_at) if count.sent_at else "",
                count.failed,
                Lines((moment(count.failed_at) if count.failed_at else "", without_secrets(count.error))),
            )
            for name, count in rows_by_queue
        ]
        yield Table(_("Hand-overs"), columns, rows, empty=_("No job was handed over to another system."))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the hand-overs of all queues; nothing in a project without sinks."""
        return {"default": read_hand_overs("default")} if _any_sink() else {}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return the numbers of hand-overs, and the queues whose jobs are not taken now."""
        return Tile.of(_figures(replies["default"])) if replies else None


def _figures(counts: Mapping[str, HandOvers]) -> Iterator[Figure]:
    # A failure that came after the last success may last.
    failing = [name for name, count in sorted(counts.items()) if (count.failed_at or 0) > (count.sent_at or 0)]
    yield Figure(_("Handed over"), sum(count.sent for count in counts.values()))
    yield Figure(_("Not taken"), sum(count.failed for count in counts.values()))
    if failing:
        yield Figure(_("Failing now"), len(failing), hint=first_of(failing, NAMED), alarm=True)


def _any_sink() -> bool:
    """Return whether this project may have a sink. Tasks of Celery that this process did not import may name one."""
    names = conf.section(QueueSettings).QUEUE_OPTIONS
    if "celery" in sys.modules or registry.sinks or sinks_of_backends():
        return True
    return any(options_of(name).SINK for name in names)
