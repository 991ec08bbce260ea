"""What a request that waits gives back."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from redis_kit.core.web.request_resources import close_databases, end_thread
from tests.fixtures.servers import wait_for


class Connection:
    """A connection to a database in the running thread."""

    settings_dict = {"AUTOCOMMIT": True}

    def __init__(self, *, in_atomic_block=False):
        self.in_atomic_block, self.closed_by, self.thread = in_atomic_block, None, threading.current_thread()
        connections["default"] = self

    def close(self):
        self.closed_by = threading.current_thread()


def test_connection_is_closed_unless_it_is_in_a_transaction():
    def closed(*, in_atomic_block):
        connection = Connection(in_atomic_block=in_atomic_block)
        close_databases()
        return connection.closed_by is connection.thread

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(closed, in_atomic_block=False).result()
        assert not executor.submit(closed, in_atomic_block=True).result()


def test_thread_of_a_request_ends_and_another_one_serves_it():
    async def request():
        async with ThreadSensitiveContext():
            end_thread()  # there is none yet
            connection = await sync_to_async(Connection)()
            end_thread()
            await asyncio.to_thread(wait_for, lambda: not connection.thread.is_alive())
            assert connection.closed_by is connection.thread
            return await sync_to_async(threading.current_thread)()

    later = asyncio.run(request())
    wait_for(lambda: not later.is_alive())


def test_nothing_ends_outside_of_a_request():
    async def command():
        thread = await sync_to_async(threading.current_thread)()
        end_thread()
        return await sync_to_async(threading.current_thread)() is thread

    assert asyncio.run(command())
