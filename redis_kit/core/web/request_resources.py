"""What a request that waits gives back: its database connections, and in an event loop the thread of its sync code."""

from contextlib import suppress

from asgiref.sync import SyncToAsync
from django.db import connections


def close_databases() -> None:
    """Close the database connections of this thread that are in no transaction. Django opens them again when needed."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["AUTOCOMMIT"] and not connection.in_atomic_block:
            connection.close()


def end_thread() -> None:
    """End the thread in which Django runs sync code for this ASGI request, and close its database connections.

    Otherwise both last as long as the request. Sync code that is called later gets another thread.
    """
    with suppress(AttributeError, LookupError):  # asgiref documents neither; without a context there is none
        executor = SyncToAsync.context_to_thread_executor.pop(SyncToAsync.thread_sensitive_context.get())
        executor.submit(close_databases)
        executor.shutdown(wait=False)
