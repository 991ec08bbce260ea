"""A worker with a bug: it takes a message for sent though the broker did not answer."""

import sys
from typing import Any

from django.core.management import execute_from_command_line

from redis_kit.queues.features.celery import broker

publish_many = broker.Publisher.publish_many


def forget(*args: Any) -> list[Exception | None]:
    return [None for _ in publish_many(*args)]


broker.Publisher.publish_many = forget  # type: ignore[method-assign]

if __name__ == "__main__":
    execute_from_command_line(["manage.py", *sys.argv[1:]])
