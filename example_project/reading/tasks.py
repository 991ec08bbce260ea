"""The tasks. A job that runs twice still delivers one letter."""

from datetime import datetime

from example_project.reading.models import Letter
from redis_kit.queues import task

QUEUE = "letters"


@task(queue_name=QUEUE, timeout=30)
def deliver(kind: str, reader_id: int, article_id: int, due_at: datetime) -> None:
    """Deliver a letter to a reader. ``due_at`` is when it should arrive."""
    Letter.objects.get_or_create(kind=kind, reader_id=reader_id, article_id=article_id, due_at=due_at)
