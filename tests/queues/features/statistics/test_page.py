"""The page of tasks: attempts, failures, run times and waits over the last hours."""

from collections import Counter

import pytest

from redis_kit.core import connections
from redis_kit.queues import Queue
from redis_kit.queues.features.statistics import counts as run_counts
from redis_kit.queues.features.statistics import page as tasks_page
from redis_kit.queues.features.statistics.counter import COUNT_RUNS
from redis_kit.queues.inspection import task_history
from redis_kit.queues.keys import names_key
from tests.dashboard.support.attacks import SAMPLE, harmless_links
from tests.dashboard.support.html import page, rows
from tests.fixtures.dashboard import ADMIN
from tests.queues.support.task_hours import put_back

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}tasks/"
SEND = "shop.tasks.send"


def count(queue, task, run_time, *, times=1, failed=False):
    """Store the counts of attempts, as a worker does."""
    counts = Counter()
    for _ in range(times):
        run_counts.add(counts, run_time, 0.5, failed=failed)
    COUNT_RUNS(queue.key(""), 72, 100, task, run_counts.dumps(counts)).run(connections.client())


@pytest.fixture
def mail(kit):
    queue = Queue("mail")
    queue.put(1)
    count(queue, SEND, 0.1, times=98)
    count(queue, SEND, 30, times=2, failed=True)
    count(queue, "shop.tasks.count", 0.002, times=10)
    return queue


def links(found, text):
    return [one.attributes["href"] for one in found.find("a") if one.words == text]


def look(client, **asked):
    return page(client.get(PAGE, asked))


def test_page_shows_tasks_by_the_time_that_they_took(mail, boss):
    found = look(boss, queue="mail")
    assert [one.words for one in found.find("dd")] == ["110", "2", "1.8 %"]
    first, second = rows(found, "Tasks of mail")
    assert (first[""], second[""]) == (SEND, "shop.tasks.count")
    assert (first["Attempts"], first["Failed"], first["In all"]) == ("100", "2", "1 min 10 s")
    assert (first["Run time p50"], first["Wait p50"], second["Run time p50"]) == ("~130 ms", "~520 ms", "~2 ms")
    assert (first["Run time p99"], first["Wait p99"]) == ("~31 s", "~520 ms")
    assert links(found, SEND)[0].endswith("tasks/?queue=mail&task=shop.tasks.send&range=24")
    assert links(found, "2")[0].endswith("jobs/?queue=mail&state=dead&task=shop.tasks.send")
    assert links(found, "100")[0].endswith("jobs/?queue=mail&state=done&task=shop.tasks.send")


def test_without_a_queue_the_tasks_of_all_queues_are_shown(mail, boss, trips):
    count(Queue("video"), SEND, 2, times=50)
    Queue("video").put(1)
    look(boss)
    trips.clear()
    found = look(boss)
    assert len(trips) == 2
    shown = [(row[""], row["Queue"], row["Attempts"]) for row in rows(found, "Tasks")]
    assert shown == [(SEND, "video", "50"), (SEND, "mail", "100"), ("shop.tasks.count", "mail", "10")]
    assert [one.words for one in found.find("dd")] == ["160", "2", "1.2 %"]


def test_one_task_is_shown_by_hour(mail, boss, trips):
    put_back(mail, 2, SEND)
    count(mail, SEND, 0.1, times=9)
    count(mail, SEND, 1, failed=True)
    look(boss)
    trips.clear()
    found = look(boss, task=SEND, range="6")
    assert len(trips) == 2
    assert [(row[""], row["Attempts"]) for row in rows(found, "Tasks")] == [(SEND, "110")]
    assert found.find("h1")[0].words == SEND
    titles = ["Attempts by hour", "Run time by hour", "Wait by hour"]
    assert [one.words for one in found.find("h2")][-3:] == titles
    attempts, run_time, wait = tasks_page.charts(task_history("mail", SEND, hours=3))
    assert [(str(name), numbers) for name, numbers in attempts.parts] == [
        ("Succeeded", [98, 0, 9]),
        ("Failed", [2, 0, 1]),
    ]
    assert [(name, [each and round(each.seconds, 2) for each in times]) for name, times in run_time.lines] == [
        ("p95", [0.13, None, 1.02]),
        ("p50", [0.13, None, 0.13]),
    ]
    assert len(wait.labels) == 3
    assert [one.words for one in look(boss, task="gone").find("dd")] == ["0", "0"]


def test_range_can_be_chosen_and_other_values_mean_a_day(mail, boss):
    put_back(mail, 30, "shop.tasks.count")
    for hours, tasks in (("1", 1), ("72", 2), ("0", 1), ("x", 1), ("9" * 99, 1)):
        assert len(rows(look(boss, queue="mail", range=hours), "Tasks of mail")) == tasks
    assert "No task ran in this time." in str([p.words for p in look(boss, queue="default").find("p")])


def test_page_needs_no_permission_but_that_to_view(mail, signed_in):
    found = look(signed_in("view_dashboard"), queue="mail")
    assert [row[""] for row in rows(found, "Tasks of mail")] == [SEND, "shop.tasks.count"]
    assert not [one for one in found.find("a") if "jobs/" in one.attributes["href"]]


def test_page_takes_two_round_trips_and_writes_nothing(mail, boss, trips, commands, kit):
    look(boss, queue="mail")
    trips.clear()
    with commands(kit) as sent:
        look(boss, queue="mail")
    assert len(trips) == 2
    assert sorted(sent) == ["EVALSHA", "SMEMBERS"]


def test_page_says_of_how_many_queues_its_figures_are(kit, mail, boss):
    kit.client.sadd(names_key(), *(f"q{number:03}" for number in range(1000)))
    said = "in 100 of 1,002 queues: choose one to see others"
    assert said in [one.words for one in look(boss).find("dd", class_="rk-hint")]
    assert said not in [one.words for one in look(boss, queue="mail").find("dd", class_="rk-hint")]


def test_unknown_queue_is_answered(mail, boss):
    assert "There is no queue none." in str([one.words for one in look(boss, queue="none").elements])


def test_hostile_names_stay_text(mail, boss):
    for attack in SAMPLE:
        count(mail, attack, 1)
    found = look(boss, queue="mail")
    assert harmless_links(found)
    assert not [*found.find("script"), *found.find("img"), *found.find("iframe")]
