"""The database connections of a worker's threads between two jobs."""

from django.db import connections


def tidy() -> None:
    """Close this thread's database connections that are broken or too old, and those that a task left in a transaction.

    One that was interrupted as it ended its transaction leaves it open, and the next job would write into that.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            connection.close()
            del connections[connection.alias]
        else:
            connection.close_if_unusable_or_obsolete()
