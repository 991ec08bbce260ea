"""The limits of a queue on its page: their use, and the buttons that change and reset them."""

import pytest

from redis_kit.queues import Queue, limits
from tests.dashboard.support.html import page, refused, row_buttons, rows, said
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


def press(client, name, value, **given):
    return client.post(f"{PAGE}do/{name}/", {"row": value, "confirmed": "1", **given})


def test_page_of_a_queue_shows_its_limits_with_their_use(queue, boss):
    content = page(boss.get(PAGE, {"queue": "mail"}))
    (row,) = rows(content, "Limits of mail")
    assert row[""] == "group=tenant:7"
    assert (row["Concurrency"], row["Rate"], row["Running"], row["Waiting lanes"]) == ("1", "10/s", "1", "1")
    assert "waits for the limit group=tenant:7" in boss.get(PAGE, {"queue": "mail"}).content.decode()
    buttons = {name for name, head in row_buttons(content) if head == "group=tenant:7"}
    assert buttons == {"change_limit", "reset_limit"}
    queue.put(1, group="a")
    assert "Limits of default" not in boss.get(PAGE, {"queue": "default"}).content.decode()


def test_buttons_change_and_reset_a_limit(queue, boss):
    value = "mail/group=tenant:7"
    assert said(press(boss, "change_limit", value, wants="2")) == ["Changed: mail, group=tenant:7."]
    assert limits.list_limits("mail")[0][:3] == ("group=tenant:7", 2, None)
    press(boss, "change_limit", value, wants="4, 10/s")
    assert limits.list_limits("mail")[0][:3] == ("group=tenant:7", 4, "10/s")
    assert "one number of jobs" in refused(press(boss, "change_limit", value, wants="4 5"))
    assert "Write a rate as" in refused(press(boss, "change_limit", value, wants="fast"))
    assert said(press(boss, "reset_limit", value))[-1] == "Reset: mail, group=tenant:7."
    assert limits.list_limits("mail") == []
    assert "Nothing was reset" in said(press(boss, "reset_limit", value))[-1]
