"""Figures about the outboxes, for the pages of queues."""

from collections.abc import Iterator
from datetime import timedelta

from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.connection import ConnectionDoesNotExist
from django.utils.translation import gettext as _

from redis_kit.core.panels import Figure
from redis_kit.queues.features.outbox.store import aliases, waiting

OVERDUE = timedelta(minutes=1)  # for a call


def waiting_calls() -> Iterator[Figure]:
    """Yield how many calls wait in each outbox of the tasks that this process knows. Two statements for each."""
    for alias in aliases():
        title = _("Outbox (%s)") % alias
        try:
            with transaction.atomic(using=alias):
                count, oldest = waiting(alias)
        except (DatabaseError, ConnectionDoesNotExist) as error:
            yield Figure(title, None, hint=str(error), alarm=True)
            continue
        age = timezone.now() - oldest if oldest else timedelta(0)
        hint = _("The oldest call has waited for %d s. A worker sends them.") % age.total_seconds() if oldest else ""
        yield Figure(title, count, hint=hint, alarm=age > OVERDUE)
