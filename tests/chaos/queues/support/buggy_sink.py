"""A worker with a bug: it takes a message for sent though the broker did not answer."""

import sys
from contextlib import suppress
from typing import Any

from django.core.management import execute_from_command_line

from redis_kit.queues import NotTaken
from redis_kit.queues.celery import publisher

publish = publisher.Publisher.publish


def forget(*args: Any, **options: Any) -> None:
    with suppress(NotTaken):
        publish(*args, **options)


publisher.Publisher.publish = forget  # type: ignore[method-assign]

if __name__ == "__main__":
    execute_from_command_line(["manage.py", *sys.argv[1:]])
