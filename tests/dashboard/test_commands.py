"""How many commands a page costs the server. Those that a script runs are not counted: one call runs them."""

import pytest

from redis_kit.locks import Lock, Semaphore
from redis_kit.queues.queue import Queue
from redis_kit.throttling import Throttle
from tests.fixtures.dashboard import ADMIN

# With 200 locks, 20 throttles and 20 queues; some panels read more if there are sinks, schedules or an outbox.
# Views and sign-ins are read from 16 buckets, and log records from a hash for each of 24 or 48 hours.
MOST = {"": 140, "locks/": 10, "throttles/": 10, "queues/": 10, "workers/": 10, "pageviews/": 30}
MOST |= {"signins/": 50, "logs/": 60}


@pytest.fixture
def busy(kit):
    """A kit with 200 locks, 10 semaphores, 20 throttles and 20 queues."""
    leases = [Lock(f"lock {number}", timeout=300).acquire() for number in range(200)]
    leases += [Semaphore(f"semaphore {number}", 5, timeout=300).acquire() for number in range(10)]
    throttles = [Throttle(f"throttle {number}", "2/h", shadow=number > 15) for number in range(20)]
    for throttle in throttles:
        for _ in range(4):
            throttle.hit("ann")
        throttle.rules.ban("eve", 3600)
    for number in range(20):
        queue = Queue(f"queue {number}")
        queue.put("job")
        (job,) = queue.claim(1)
        queue.nack(job, max_attempts=1)
    yield kit
    for lease in leases:
        lease.release()
    assert throttles


def test_pages_send_few_commands(busy, boss, commands):
    for path in MOST:
        boss.get(f"{ADMIN}{path}")  # loads the scripts
    sent_by_page = {}
    for path in MOST:
        with commands(busy) as sent:
            assert b'class="rk-error"' not in boss.get(f"{ADMIN}{path}").content
        sent_by_page[path] = len(sent)
    assert all(count <= MOST[path] for path, count in sent_by_page.items()), sent_by_page
