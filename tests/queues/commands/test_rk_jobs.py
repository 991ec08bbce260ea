"""``manage.py rk_jobs``."""

import json
import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from redis_kit.queues import Queue
from redis_kit.queues.management.manage import JobFilter
from redis_kit.queues.reports import job_pages
from redis_kit.queues.reports.job_pages import first_jobs
from tests.queues.support.putting import die, put
from tests.queues.support.tasks import note

CALL = "tests.queues.support.tasks.note"


@pytest.fixture
def mail(kit):
    """A queue with a job of each state, of two tasks; the running one stores a result."""
    queue = Queue("mail")
    die(queue, "ValueError: no")
    note.using(queue_name="mail").enqueue("runs")
    queue.claim(worker="w1")
    put(queue, "first", "shop.tasks.send", tags=("billing", "order:42"))
    note.using(queue_name="mail", run_after=timedelta(minutes=5)).enqueue("later")
    return queue


def test_jobs_are_a_table_by_state(mail, shell):
    code, output, errors = shell("rk_jobs")
    titles, running, ready, scheduled, dead = (line.split() for line in output.splitlines())
    assert (code, errors) == (0, "")
    assert titles == ["QUEUE", "ID", "TASK", "STATE", "AGE", "ATTEMPTS", "WORKER", "ERROR"]
    assert (running[0], running[2:4], running[-2:]) == ("mail", [CALL, "running"], ["1", "w1"])
    assert running[1].endswith(".mail")
    assert re.fullmatch(r"mail first shop.tasks.send ready [\d.]+ m?s 0", " ".join(ready))
    assert " ".join(scheduled[3:]) in {"scheduled in 5 min 0 s 0", "scheduled in 4 min 59 s 0"}
    assert (dead[1], dead[-2:]) == ("j0", ["1", "ValueError"])


def test_job_that_killed_its_processes_has_the_whole_reason(mail, shell):
    reason = "poison: 3 processes died in which it ran alone"
    die(mail, reason)
    poisoned = json.loads(shell("rk_jobs", "mail", "--state", "dead", "--limit", 1, "--json")[1])
    assert [row["error"] for row in poisoned] == [reason]
    assert shell("rk_jobs", "mail", "--state", "dead")[1].splitlines()[1].endswith(reason)


def test_jobs_are_json_for_programs(mail, shell):
    code, output, _ = shell("rk_jobs", "mail", "--json")
    running, ready, scheduled, dead = json.loads(output)
    assert code == 0
    assert (running["task"], running["state"], running["worker"], running["attempts"]) == (CALL, "running", "w1", 1)
    assert 0 <= running["age"] < 60
    assert ready == {
        **{"queue": "mail", "id": "first", "task": "shop.tasks.send", "state": "ready", "age": ready["age"]},
        **{
            "tags": ["billing", "order:42"],
            "attempts": 0,
            "worker": None,
            "priority": 0,
            "due": ready["due"],
            "error": "",
        },
    }
    assert -301 < scheduled["age"] < -290
    assert (dead["id"], dead["error"]) == ("j0", "ValueError")


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("--state", "ready"), ["first"]),
        (("--state", "dead", "--task", "shop.tasks.send"), ["j0"]),
        (("--task", "shop.tasks.send"), ["first", "j0"]),
        (("--task", "shop.tasks.other"), []),
        (("--tag", "billing"), ["first"]),
        (("--tag", "bill"), []),
    ],
)
def test_jobs_are_chosen_by_state_task_and_tag(mail, shell, arguments, ids):
    assert [job["id"] for job in json.loads(shell("rk_jobs", "mail", "--json", *arguments)[1])] == ids


def test_empty_lists_say_so(mail, shell):
    assert shell("rk_jobs", "mail", "--task", "nobody") == (0, "No job matches.\n", "")
    assert shell("rk_jobs", "default") == (0, "There are no jobs.\n", "")


def test_what_is_not_listed_is_told(mail, shell):
    mail.put_many(range(3))
    lines = shell("rk_jobs", "mail", "--limit", 1)[1].splitlines()
    assert (len(lines), lines[-1]) == (6, "mail: 1 of 4 ready jobs are shown; see --limit.")


def test_jobs_of_a_task_are_looked_for_in_a_bounded_number(mail, shell, trips, monkeypatch):
    monkeypatch.setattr(job_pages.manage, "PAGE", 2)
    for name in ("rk_jobs.LISTED_THROUGH", "job_pages.LISTED_THROUGH"):
        place = "commands" if name.startswith("rk") else "reports"
        monkeypatch.setattr(f"redis_kit.queues.{place}.{name}", 4)
    mail.put_many(range(4))
    put(mail, "last", "shop.tasks.send")
    mail.peek()  # or the server might not know the script yet
    trips.clear()
    assert [info.id for info in mail.run_flow(first_jobs(mail, "ready", 5, JobFilter("shop.tasks.send")))] == ["first"]
    assert len(trips) == 2
    output = shell("rk_jobs", "mail", "--task", "shop.tasks.send")[1]
    assert output.splitlines()[-1] == "Looked at the first 4 of 6 ready jobs of mail."


def test_task_of_a_job_with_many_attempts_is_known(kit, shell):
    queue = Queue("mail")
    note.using(queue_name="mail").enqueue("x")
    for _ in range(30):
        (job,) = queue.claim(worker="w" * 22)
        queue.nack(job, max_attempts=30)
    (found,) = json.loads(shell("rk_jobs", "mail", "--json")[1])
    assert (found["task"], found["attempts"]) == (CALL, 30)
    assert queue.requeue(task=CALL) == 1


def test_damaged_queue_is_named_beside_the_others(mail, kit, shell):
    kit.client.set(Queue("default").key("ready"), "x")
    code, output, errors = shell("rk_jobs")
    assert (code, len(output.splitlines())) == (69, 5)
    assert errors.startswith(f"Queue default can't be read: The key {Queue('default').key('ready')!a} is a string")


def test_done_jobs_are_listed_from_the_latest(kit, shell):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 100}}})
    queue = Queue("mail")
    for number in range(3):
        put(queue, f"j{number}", "shop.tasks.send" if number else CALL)
        queue.ack(*queue.claim(worker="w1"))
    code, output, errors = shell("rk_jobs", "mail", "--state", "done", "--limit", 2)
    titles, *lines = [line.split() for line in output.splitlines()]
    assert (code, errors) == (0, "")
    assert titles == ["QUEUE", "ID", "TASK", "ENDED", "RAN", "WAITED", "ATTEMPTS", "WORKER"]
    assert [line[:3] + line[-2:] for line in lines] == [["mail", f"j{n}", "shop.tasks.send", "1", "w1"] for n in (2, 1)]
    (one,) = json.loads(shell("rk_jobs", "--state", "done", "--task", CALL, "--json")[1])
    assert (one["queue"], one["id"], one["task"], one["attempts"], one["run_time"]) == ("mail", "j0", CALL, 1, None)


def test_without_done_jobs_the_option_is_named(mail, shell):
    code, output, _ = shell("rk_jobs", "mail", "--state", "done")
    assert (code, output.strip()) == (
        0,
        "No done job is kept. The option DONE_LIMIT of a queue keeps the latest ones.",
    )


@pytest.mark.parametrize(
    "arguments", ["rk_jobs mail --state ready --state dead", "rk_purge mail --state dead --state ready"]
)
def test_state_that_is_given_twice_is_refused(kit, arguments):
    with pytest.raises(CommandError, match="argument --state: may be given only once"):
        call_command(*arguments.split())
