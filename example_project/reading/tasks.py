"""The tasks. A job that runs twice still delivers one letter."""

import logging
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from example_project.reading.models import Letter
from redis_kit.mailbox import Inbox
from redis_kit.queues import Workflow, chain, failures, group, periodic, previous, progress, task

logger = logging.getLogger("reading")
QUEUE = "letters"


@task(queue_name=QUEUE, timeout=30)
def deliver(kind: str, reader_id: int, article_id: int, due_at: datetime) -> None:
    """Deliver a letter to a reader. ``due_at`` is when it should arrive."""
    letter, _ = Letter.objects.get_or_create(kind=kind, reader_id=reader_id, article_id=article_id, due_at=due_at)
    # With the letter as the id, the bell rings once, however often the job runs.
    Inbox(letter.reader.get_username()).push(f"Your letter is here: {letter}", client_id=str(letter.pk))


class PostOfficeClosed(Exception):
    """The post office accepts no parcels now."""


class OutOfPrint(Exception):
    """The publisher has no copy of a book, and will have none."""


@task(queue_name="parcels", max_attempts=5, backoff=(10, 20), takes_context=True, tags=["books"])
def post_parcel(context: Any, title: str) -> str:
    """Post a book. The first two attempts fail, so the job is retried twice."""
    logger.info("Packed %r.", title)
    if context.attempt < 3:
        logger.warning("The counter is closed at attempt %d.", context.attempt)
        raise PostOfficeClosed(f"The post office did not accept {title!r}.")
    return f"posted at attempt {context.attempt}"


@task(queue_name="orders", max_attempts=2, backoff=1, tags=["books", "publisher"])
def order_book(title: str) -> None:
    """Order a book. Every attempt fails, so the job is dead after two."""
    logger.info("Asked the publisher for %r.", title)
    raise OutOfPrint(f"{title!r} is out of print.")


@task(queue_name="bindery")
def bind_volume(title: str) -> None:
    """Bind the articles of a year to a volume, and report the progress."""
    for done in range(1, 11):
        time.sleep(0.2)
        progress(done, 10, note=title)


@task(queue_name="bindery")
def print_sheet(title: str) -> str:
    """Print an article as a sheet of a book."""
    time.sleep(1)
    return f"sheet of {title}"


@task(queue_name="bindery")
def sew(sheets: list[str | None], failed: list[dict[str, str]]) -> str:
    """Sew the sheets of a book that could be printed."""
    return f"a book of {len(sheets) - len(failed)} sheets"


def make_book(titles: Iterable[str]) -> Workflow:
    """Print sheets side by side, sew them when all are done, and send the newsletter."""
    sheets = group(print_sheet.step(title) for title in titles)
    return chain(sheets.on_done(sew.step(previous, failures)), send_newsletter.step("all readers")).enqueue()


@task(queue_name="newsletters")
def send_newsletter(reader: str) -> str:
    """Send the newsletter to a reader."""
    return f"sent to {reader}"


@periodic(every=20, args=[30])
@periodic(cron="0 4 * * *", name="old letters at night", args=[7])
@task(queue_name=QUEUE)
def throw_letters_away(days: int) -> int:
    """Throw letters away that arrived more than some days ago, and return how many."""
    count, _ = Letter.objects.filter(arrived_at__lt=timezone.now() - timedelta(days=days)).delete()
    return count
