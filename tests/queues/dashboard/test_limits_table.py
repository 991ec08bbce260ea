"""The limits of a queue on its page, and their use."""

import pytest

from redis_kit.queues import Queue, limits
from tests.dashboard.support.html import page, rows
from tests.fixtures.dashboard import ADMIN

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}queues/"


@pytest.fixture
def queue(kit):
    queue = Queue("mail")
    queue.put_many([1, 2, 3], group="tenant:7")
    limits.set_limit("mail", "group=tenant:7", concurrency=1, rate="10/s")
    queue.claim(5, worker="w")
    return queue


def test_page_of_a_queue_shows_its_limits_with_their_use(queue, boss):
    content = page(boss.get(PAGE, {"queue": "mail"}))
    (row,) = rows(content, "Limits of mail")
    assert row[""] == "group=tenant:7"
    assert (row["Concurrency"], row["Rate"], row["Running"], row["Waiting lanes"]) == ("1", "10/s", "1", "1")
    assert "waits for the limit group=tenant:7" in boss.get(PAGE, {"queue": "mail"}).content.decode()
    queue.put(1, group="a")
    assert "Limits of default" not in boss.get(PAGE, {"queue": "default"}).content.decode()
