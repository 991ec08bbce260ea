"""The content of the panels of queues and workers."""

import pytest

from redis_kit.core.panels import Bars, Figure, StackedBars, Table, Viewer
from redis_kit.queues import Queue
from redis_kit.queues.dashboard.queues_page import QueuesPanel
from redis_kit.queues.dashboard.workers_page import WorkersPanel
from redis_kit.testing.jobs import drain


def shown(panel):
    content = list(panel.content())
    figures = {str(one.label): one.value for one in content if isinstance(one, Figure)}
    table = next(one for one in content if isinstance(one, Table))
    return content, figures, [tuple(row) for row in table.rows]


@pytest.fixture
def busy(kit):
    kit.options(QUEUES={"NAMES": ["default", "mail"]})
    mail = Queue("mail")
    mail.put_many(range(4))
    mail.put("later", delay=60)
    mail.ack(*mail.claim(worker="w1"))
    mail.nack(*mail.claim(worker="w1"), max_attempts=1)
    mail.claim(worker="w1")
    return mail


def test_queues_show_their_states_and_the_last_half_hour(busy):
    content, figures, rows = shown(QueuesPanel())
    wait = figures.pop("Oldest wait")
    assert 0 <= wait.total_seconds() < 10
    assert figures == {"Ready": 1, "Scheduled": 1, "Running": 1, "Dead": 1}
    assert [row[:5] for row in rows] == [("default", 0, 0, 0, 0), ("mail", 1, 1, 1, 1)]
    (ended,) = [one for one in content if isinstance(one, StackedBars)]
    (_, done), (_, failed) = ended.parts
    assert (sum(done), sum(failed)) == (1, 1)
    assert ended.labels[-1].count(":") == 1
    states, *lates = [one.bars for one in content if isinstance(one, Bars)]
    assert [number for _, number in states] == [1, 1, 1, 1]
    assert [len(bars) for bars in (done, failed, ended.labels, *lates)] == [30] * 5
    (dead,) = [one for one in content if isinstance(one, Figure) and one.alarm]
    assert str(dead.label) == "Dead"


def test_queues_show_how_late_attempts_began(kit):
    kit.options(QUEUES={"NAMES": ["default", "mail"]})
    for name, late in (("default", (10,)), ("mail", (20, 60))):
        queue = Queue(name)
        for number, seconds in enumerate(late):
            queue.put(1, id=f"x{number}")
            head, due = kit.client.hget(queue.key("jobs"), f"x{number}").split("\n")[0].rsplit(" ", 1)
            kit.client.hset(queue.key("jobs"), f"x{number}", f"{head} {int(due) - seconds * 1000}\n1")
        queue.claim(2)
    content, _, _ = shown(QueuesPanel())
    _, *lates = [one.bars for one in content if isinstance(one, Bars)]
    mean, most = [[value.total_seconds() for _, value in bars if value] for bars in lates]
    assert max(most) == pytest.approx(60, abs=5)
    assert mean == [pytest.approx(30, abs=5)] or len(mean) == 2  # a minute may have begun meanwhile


def test_waits_of_minutes_are_shown_in_minutes(busy, kit):
    (id,) = [one.id for one in busy.peek(1)]
    record = kit.client.hget(busy.key("jobs"), id)
    head, due = record.split("\n")[0].rsplit(" ", 1)
    kit.client.hset(busy.key("jobs"), id, f"{head} {int(due) - 694_000}\n1")
    _, figures, rows = shown(QueuesPanel())
    assert 690 < figures["Oldest wait"].total_seconds() < 720
    assert rows[1][5] == figures["Oldest wait"]


def test_queues_take_two_round_trips_dead_jobs_a_third_and_a_look_up_two(busy, kit, commands, trips):
    def sent(viewer=None):
        panel = QueuesPanel()
        panel.viewer = viewer or panel.viewer
        trips.clear()
        with commands(kit) as found:
            panel.search()
            list(panel.content())
        return len(trips), found

    def asking(**asked):
        return Viewer(lambda permission: True, asked)

    job, elsewhere, queue = asking(queue="mail", id="x"), asking(queue="default", id="x.mail"), asking(queue="mail")
    for viewer in (None, job, queue):
        sent(viewer)
    assert sent() == (3, ["SMEMBERS", *["EVALSHA"] * 3])
    for viewer, round_trips, scripts, logs in ((job, 2, 1, 1), (elsewhere, 2, 2, 2), (queue, 2, 6, 0)):
        trips_taken, found = sent(viewer)
        assert (trips_taken, sorted(found)) == (round_trips, [*["EVALSHA"] * scripts, *["LRANGE"] * logs, "SMEMBERS"])
    busy.purge("dead")
    assert sent() == (2, ["SMEMBERS", *["EVALSHA"] * 2])


def test_queue_with_due_jobs_and_no_living_worker_needs_attention(busy, kit):
    def deserted():
        found = [one for one in QueuesPanel().content() if isinstance(one, Figure) and "worker" in str(one.label)]
        return [(one.value, str(one.hint), one.alarm) for one in found]

    assert deserted() == []
    kit.client.zadd(busy.key("workers"), {"w1": 1})
    assert deserted() == [(1, "Jobs are due in: mail", True)]
    busy.purge("ready")
    assert deserted() == []
    kit.client.zadd(busy.key("scheduled"), {"later": 1})
    assert deserted() == [(1, "Jobs are due in: mail", True)]


def test_dead_jobs_are_retried_by_a_button_after_a_confirmation(busy):
    found = QueuesPanel().actions()["retry_dead"]
    assert (found.permission, found.confirm) == ("redis_kit.manage_queues", True)
    assert str(QueuesPanel().retry_dead("mail")) == "Retried 1 job of mail."
    assert busy.counts().dead == 0


def tables(panel):
    return {str(one.title): [tuple(row) for row in one.rows] for one in panel.content() if isinstance(one, Table)}


def test_other_programs_that_claim_jobs_are_shown_with_them(busy, kit):
    _, figures, rows = shown(WorkersPanel())
    assert figures == {"Workers": 1, "Supervisors": 0, "Running jobs": 1}
    assert rows == []
    ((worker, host, state, queues, threads, jobs, memory, silent),) = tables(WorkersPanel())["Workers"]
    assert worker.lines[0] == "w1"
    assert int(str(worker.lines[1]).removeprefix("process ")) > 0
    assert (queues, len(jobs.lines)) == ("mail", 2)
    assert (state.lines, threads, memory) == (("", ""), None, None)
    assert host.lines[0]
    assert 0 <= silent < 10


def test_worker_with_damaged_information_is_shown(busy, kit):
    for garbage in (
        "\x00 {not json",
        "5 []",
        "5 {}",
        '5 {"host": "x", "pid": 1e999}',
        '5 "host pid"',
        "5 " + "[" * 9999,
    ):
        kit.client.hset(busy.key("info"), "w1", garbage)
        ((worker, host, state, *_),) = tables(WorkersPanel())["Workers"]
        assert (worker.lines[0], str(state.lines[0]), host.lines[0]) == ("w1", "damaged", "?")


def test_empty_pages_say_what_to_do(kit):
    _, _, rows = shown(WorkersPanel())
    assert rows == []
    _, figures, rows = shown(QueuesPanel())
    assert figures["Oldest wait"] is None
    assert len(rows) == 1


@pytest.mark.parametrize("part", ["ready", "reasons"])
def test_queue_that_cannot_be_read_hides_no_other(busy, kit, part):
    other = Queue("default")
    other.put(1)
    other.nack(*other.claim(), max_attempts=1)
    kit.client.delete(other.key(part))
    kit.client.set(other.key(part), "x")
    panel = QueuesPanel()
    wrong = f"The key {other.key(part)!a} is a string in place of"
    found = tables(panel)
    ((name, why),) = found["Queues that can't be read"]
    assert name == "default"
    assert wrong in why
    assert ("mail", 1, 1, 1, 1) in [row[:5] for row in found["Queues"]]
    panel.viewer = Viewer(lambda permission: True, {"queue": "default"})
    (told,) = panel.content()
    assert wrong in str(told.empty)
    panel.viewer = Viewer(lambda permission: True, {"queue": "mail"})
    shown_alone = list(panel.content())
    assert [[link.value for link in row[1:5]] for row in shown_alone[0].rows] == [[1, 1, 1, 1]]
    assert wrong not in str(shown_alone)
    panel.viewer = Viewer()
    (figure,) = [one for one in panel.content() if isinstance(one, Figure) and "read" in str(one.label)]
    assert (figure.value, figure.hint, figure.alarm) == (1, "default", True)


def test_queues_show_calls_that_no_living_worker_can_run(kit):
    mail = Queue("mail")
    for number in range(2):
        mail.put({"task": "shop.tasks.send", "args": [number]})
    drain("mail")
    content, figures, _ = shown(QueuesPanel())
    assert figures["Jobs that no worker can run"] == 2
    (alarm,) = [one for one in content if isinstance(one, Figure) and one.alarm]
    assert "shop.tasks.send" in str(alarm.hint)
    (table,) = [one for one in content if isinstance(one, Table) and "no worker" in str(one.title)]
    assert [row[:3] for row in table.rows] == [("shop.tasks.send(_)", "mail", 2)]
