"""A worker with a seeded bug: it does not compare the jobs that run on the server with those that it has."""

import sys
from unittest.mock import patch

from django.core.management import execute_from_command_line

from redis_kit.queues.worker.supervisor.child import SupervisedQueue

if __name__ == "__main__":
    patch.object(
        SupervisedQueue, "suspects", lambda self, page, running: []
    ).start()  # fails if there is no such method
    execute_from_command_line(["manage.py", *sys.argv[1:]])
