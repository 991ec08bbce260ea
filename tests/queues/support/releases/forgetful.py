"""A worker with a bug: it leaves jobs that others gave back alone, until their time comes."""

from django.core.management import execute_from_command_line

from redis_kit.queues.worker.supervisor.maintenance import Recaller

if __name__ == "__main__":
    import sys

    Recaller.see_to = lambda self, found: set()  # type: ignore[method-assign]
    execute_from_command_line(["manage.py", *sys.argv[1:]])
