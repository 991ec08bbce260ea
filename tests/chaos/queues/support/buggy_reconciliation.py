"""A worker with a seeded bug: it does not compare the jobs that run on the server with those that it has."""

import sys

from django.core.management import execute_from_command_line

from redis_kit.queues.worker.supervisor.child import Suspects

Suspects.take_in = lambda self, page, shown: []  # type: ignore[method-assign]

if __name__ == "__main__":
    execute_from_command_line(["manage.py", *sys.argv[1:]])
