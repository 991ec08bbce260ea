"""A worker with a bug: it leaves jobs that others gave back alone, until their time comes."""

from math import inf

from django.core.management import execute_from_command_line

from redis_kit.queues.features.unknown.recall import Recall

if __name__ == "__main__":
    import sys

    Recall.run = lambda self: setattr(self, "due", inf)  # type: ignore[method-assign]
    execute_from_command_line(["manage.py", *sys.argv[1:]])
