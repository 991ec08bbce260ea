"""The page of tasks: attempts, failures, run times and waits over the last hours."""

from collections import Counter

import pytest

from redis_kit.core import connections
from redis_kit.queues import Queue
from redis_kit.queues.jobs import run_counts
from redis_kit.queues.panels import tasks_page
from redis_kit.queues.store import hourly
from tests.dashboard.support.attacks import SAMPLE, harmless_links
from tests.dashboard.support.html import page, rows
from tests.fixtures.dashboard import ADMIN

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}tasks/"
SEND = "shop.tasks.send"


def count(queue, task, run_time, *, times=1, failed=False):
    """Store the counts of attempts, as a worker does."""
    counts = Counter()
    for _ in range(times):
        run_counts.add(counts, run_time, 0.5, failed=failed)
    hourly.count_runs(queue.key(""), {task: counts}).run(connections.client())


@pytest.fixture
def mail(kit):
    queue = Queue("mail")
    queue.put(1)
    count(queue, SEND, 0.1, times=98)
    count(queue, SEND, 30, times=2, failed=True)
    count(queue, "shop.tasks.count", 0.002, times=10)
    return queue


def look(client, **asked):
    return page(client.get(PAGE, asked))


def test_page_shows_tasks_by_the_time_that_they_took(mail, boss):
    found = look(boss, queue="mail")
    assert [one.words for one in found.find("dd")] == ["110", "2", "1.8 %"]
    first, second = rows(found, "Tasks of mail")
    assert (first[""], second[""]) == (SEND, "shop.tasks.count")
    assert (first["Attempts"], first["Failed"], first["In all"]) == ("100", "2", "1 min 10 s")
    assert (first["Run time p50"], first["Wait p50"], second["Run time p50"]) == ("108 ms", "431 ms", "2 ms")
    assert (first["Run time p99"], first["Wait p99"]) == ("27.6 s", "431 ms")
    (link,) = [one.attributes["href"] for one in found.find("a") if one.words == SEND]
    assert link.endswith("jobs/?queue=mail&state=dead&task=shop.tasks.send")


def test_chart_names_tasks_by_their_functions_unless_two_are_the_same():
    labels = tasks_page._labels(["shop.tasks.send", "shop.tasks.count", ""])
    assert list(map(str, labels)) == ["send", "count", "other tasks"]
    assert tasks_page._labels(["shop.tasks.send", "news.tasks.send"]) == ["shop.tasks.send", "news.tasks.send"]


def test_hours_can_be_chosen_and_other_values_mean_all(mail, boss):
    for hours in ("1", "24", "0", "x", "9" * 99):
        assert len(rows(look(boss, queue="mail", hours=hours), "Tasks of mail")) == 2
    assert "No task of this queue ran in this time." in str([p.words for p in look(boss).find("p")])


def test_page_needs_no_permission_but_that_to_view(mail, signed_in):
    found = look(signed_in("view_dashboard"), queue="mail")
    assert [row[""] for row in rows(found, "Tasks of mail")] == [SEND, "shop.tasks.count"]
    assert not [one for one in found.find("a") if one.words == SEND]


def test_page_takes_two_round_trips_and_writes_nothing(mail, boss, trips, commands, kit):
    look(boss, queue="mail")
    trips.clear()
    with commands(kit) as sent:
        look(boss, queue="mail")
    assert len(trips) == 2
    assert sorted(sent) == ["EVALSHA", "SMEMBERS"]


def test_unknown_queue_is_answered(mail, boss):
    assert "There is no queue none." in str([one.words for one in look(boss, queue="none").elements])


def test_hostile_names_stay_text(mail, boss):
    for attack in SAMPLE:
        count(mail, attack, 1)
    found = look(boss, queue="mail")
    assert harmless_links(found)
    assert not [*found.find("script"), *found.find("img"), *found.find("iframe")]
