"""The commands that show queues and change their jobs."""

import json
import os
import re
import signal
import subprocess

import pytest

from redis_kit.core.errors import KeyConflict
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.commands import base
from redis_kit.queues.engine import ids as identity
from redis_kit.queues.inspection import queue_counts, queue_stats
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, send_heartbeats
from redis_kit.testing.jobs import drain
from tests.fixtures.fork_server import start_python
from tests.queues.support.minutes import count
from tests.queues.support.putting import die

AWAY = {"URL": "redis://127.0.0.1:1/0"}
NAMES = ("rk_jobs", "rk_pause", "rk_purge", "rk_queues", "rk_resume", "rk_retry")
NEEDED = {"rk_purge": ("--state", "ready", "--no-input"), "rk_retry": ("--no-input",)}


@pytest.fixture
def command(shell):
    return shell


@pytest.fixture
def mail(kit):
    """A queue with 2 ready jobs, 1 scheduled, 1 running, 2 dead ones."""
    queue = Queue("mail")
    die(queue, "ValueError: no")
    die(queue, "KeyError: no", tags=("billing", "order:42"))
    queue.put("running", id="running")
    queue.claim(worker="w1")
    queue.put_many(range(2))
    queue.put("later", delay=60)
    return queue


def test_queues_are_a_table(mail, command):
    code, output, errors = command("rk_queues")
    titles, default, row, note = output.splitlines()
    assert (code, errors) == (0, "")
    assert titles.split("  ")[0] == "QUEUE"
    assert default.split()[:5] == ["default", "0", "0", "0", "0"]
    assert row.split()[:5] == ["mail", "2", "1", "1", "2"]
    assert "5 minutes" in note


def test_error_names_the_arguments_that_are_missing_alone(kit, command):
    for name in ("rk_retry", "rk_pause"):
        assert command(name)[2].splitlines()[-1].endswith(": the following arguments are required: NAME")


def test_one_queue_is_shown_alone_with_its_pause(mail, command):
    mail.pause(600)
    (row,) = command("rk_queues", "mail")[1].splitlines()[1:-1]
    assert re.search(r"for (10 min 0 s|9 min 5\d s)$", row)
    mail.pause()
    assert command("rk_queues", "mail")[1].splitlines()[1].endswith("until resumed")


def test_rates_are_those_of_the_last_five_minutes(mail, command, kit):
    minute = int(kit.client.time()[0]) // 60
    for before, done, failed in ((1, 60, 5), (5, 40, 0), (6, 999, 999)):
        count(mail, kit, minute - before, done, failed)
    (found,) = json.loads(command("rk_queues", "mail", "--json")[1])
    # 2 jobs died in this minute, of which a part is over; it may be over just now, and with it the earliest.
    done, failed = found["done_per_minute"], found["failed_per_minute"]
    assert 100 / 6 <= done <= 100 / 5 or 60 / 6 <= done <= 60 / 5
    assert 7 / 6 <= failed <= 7 / 5


def test_work_of_the_present_minute_counts(mail, command):
    for job in mail.claim(2):
        mail.ack(job)
    (found,) = json.loads(command("rk_queues", "mail", "--json")[1])
    assert 0.333 <= found["done_per_minute"] <= 0.4
    assert 2 / 6 <= found["failed_per_minute"] <= 2 / 5
    assert re.search(r" 0\.[34] +0\.[34] ", command("rk_queues", "mail")[1])


def test_queue_with_jobs_and_without_a_worker_is_named(mail, command):
    Queue("quiet").put("later", delay=60)
    Queue("forgotten").put(1)
    code, output, _ = command("rk_queues")
    *_, note, told = output.splitlines()
    assert (code, told, "Means" in note) == (0, "No worker works on: forgotten", True)
    assert {row.split()[0] for row in output.splitlines() if "none!" in row} == {"forgotten"}
    found = {one["queue"]: one["workers"] for one in json.loads(command("rk_queues", "--json")[1])}
    assert found == {"default": 0, "mail": 2, "quiet": 0, "forgotten": 0}  # this process and w1


def test_workers_that_claim_no_more_are_none_for_jobs_that_wait(command, kit):
    queue = Queue("default")
    (first, second) = [WorkerQueue("default", worker=name, about="") for name in ("w1", "w2")]
    for source, state, shown in (
        (first, "working", "1"),
        (first, "quiet", "0 (1 quiet)"),
        (second, "working", "1 (1 quiet)"),
    ):
        source.about = identity.information(state=state)
        send_heartbeats([source])
        assert shown in command("rk_queues")[1].splitlines()[1]
    queue.put(1)
    assert not queue_stats(["default"])["default"].deserted
    second.about = identity.information(state="stopping")
    send_heartbeats([second])
    code, output, _ = command("rk_queues")
    assert (code, "none! (2 quiet)" in output) == (0, True)
    assert output.splitlines()[-1] == "No worker works on: default"
    report = queue_stats(["default"])["default"]
    assert (report.workers, report.quiet, report.deserted) == (2, 2, True)
    assert json.loads(command("rk_queues", "--json")[1])[0]["quiet_workers"] == 2


def test_queue_that_cannot_be_read_is_named_beside_the_others(mail, command, kit):
    kit.client.set(Queue("default").key("ready"), "x")
    why = f"The key {Queue('default').key('ready')!a} is a string in place of a zset"
    code, output, errors = command("rk_queues")
    assert (code, errors) == (69, "CommandError: 1 of 2 queues can't be read.\n")
    _, row, _, told = output.splitlines()
    assert row.split()[:5] == ["mail", "2", "1", "1", "2"]
    assert told.startswith(f"Queue default can't be read: {why}")
    found, wrong = json.loads(command("rk_queues", "--json")[1])
    assert (found["queue"], wrong["queue"], wrong["error"].startswith(why)) == ("mail", "default", True)
    with pytest.raises(KeyConflict, match="string in place"):
        queue_stats(["mail", "default"])
    with pytest.raises(KeyConflict, match="string in place"):
        queue_counts(["mail", "default"])


def test_json_has_all_numbers(mail, command):
    mail.pause(600)
    code, output, _ = command("rk_queues", "--json")
    default, found = json.loads(output)
    assert code == 0
    assert default == {**default, "queue": "default", "wait": None, "paused": None}
    assert found == {**found, "queue": "mail", "ready": 2, "scheduled": 1, "running": 1, "dead": 2}
    assert 0 <= found["wait"] < 30
    assert 500 < found["paused"]["ends_in"] <= 600


def test_queues_are_watched_with_one_round_trip_each_time(mail, command, kit, commands, monkeypatch):
    pauses = []

    def wait(seconds):
        pauses.append(seconds)
        mail.put(1)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", wait)
    command("rk_queues")
    with commands(kit) as sent:
        code, output, _ = command("rk_queues", "--watch", "--json")
    found = [json.loads(line) for line in output.splitlines() if line]
    assert (code, pauses) == (0, [2.0] * 3)
    assert [queues[1]["ready"] for queues in found] == [2, 3, 4]
    assert sent == ["SMEMBERS", *["EVALSHA"] * 3 * 3]  # each time one for each of two queues, and the put


def test_watching_goes_on_while_redis_is_unavailable(kit, command, monkeypatch):
    calls = []

    def wait(seconds):
        calls.append(seconds)
        kit.connect(AWAY)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", wait)
    code, output, _ = command("rk_queues", "--watch")
    assert code == 0
    assert output.count("QUEUE") == 1
    assert output.count("Redis is unavailable: ") == 1


def test_watching_ends_with_ctrl_c(mail, settings):
    arguments = ["-m", "django", "rk_queues", "--watch", "--settings", "tests.queues.support.worker_settings"]
    environment = {**os.environ, "REDIS_KIT": json.dumps(settings.REDIS_KIT), "JOURNAL": "unused"}
    process = start_python(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        lines = [process.stdout.readline().split()[0] for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    assert lines == ["QUEUE", "default", "mail"]


def test_queue_is_paused_and_resumed(mail, command):
    assert command("rk_pause", "mail") == (0, "Paused: mail, until resumed.\n", "")
    assert mail.paused().ends_in is None
    assert command("rk_pause", "mail", 90) == (0, "Paused: mail, for 1 min 30 s.\n", "")
    assert 80 < mail.paused().ends_in <= 90
    assert command("rk_pause", "mail", "10m") == (0, "Paused: mail, for 10 min 0 s.\n", "")
    assert command("rk_resume", "mail") == (0, "Resumed: mail.\n", "")
    assert mail.paused() is None
    code, output, errors = command("rk_resume", "mail")
    assert (code, output) == (1, "")
    assert "Nothing was resumed: mail was not paused." in errors


def test_all_dead_jobs_are_retried(mail, command):
    assert command("rk_retry", "mail", "--no-input") == (0, "Retried in mail: 2 jobs.\n", "")
    assert mail.counts() == QueueCounts(1, 4, 1, 0)
    code, _, errors = command("rk_retry", "mail", "--noinput")
    assert (code, "Nothing was retried" in errors) == (1, True)


def test_more_dead_jobs_than_go_into_a_call_are_retried(mail, command, monkeypatch):
    from redis_kit.queues.commands import rk_retry

    monkeypatch.setattr(rk_retry, "CHUNK", 1)
    assert command("rk_retry", "mail", "--no-input")[1] == "Retried in mail: 2 jobs.\n"


def test_retry_of_all_dead_jobs_is_confirmed_on_a_terminal(mail, command):
    for typed in ("", "no\n", "y\n"):
        code, output, errors = command("rk_retry", "mail", typed=typed)
        assert (code, "mail has 2 dead jobs. Type 'yes' to retry all of them: " in output) == (1, True)
        assert "Nothing was retried: the answer does not match." in errors
    assert mail.counts().dead == 2
    assert command("rk_retry", "mail", typed="yes\n")[1].endswith("Retried in mail: 2 jobs.\n")
    code, output, errors = command("rk_retry", "mail", typed="yes\n")
    assert (code, output) == (1, "")


@pytest.mark.parametrize(("name", "arguments"), [("rk_retry", ()), ("rk_purge", ("--state", "dead"))])
def test_confirmation_without_a_terminal_is_an_error_that_names_the_option(mail, command, name, arguments):
    code, output, errors = command(name, "mail", *arguments)
    assert (code, output) == (2, "")
    assert "there is no terminal to ask on. Give --no-input" in errors
    assert command(name, "mail", *arguments, "--json")[0] == 2
    assert mail.counts().dead == 2


def test_id_of_a_call_may_lack_its_queue(kit, command):
    queue = Queue("mail")
    queue.put({"task": "a"}, id=(id := identity.new_call("mail")))
    queue.nack(*queue.claim(), max_attempts=1)
    assert command("rk_retry", "mail", id.partition(".")[0])[1] == "Retried in mail: 1 job.\n"
    assert queue.get(id).state == "ready"


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("j1",), ["j1"]),
        (("j0", "j1"), ["j0", "j1"]),
        (("--limit", 1), ["j0"]),
        (("--error", "KeyError"), ["j1"]),
        (("--task", "shop.tasks.send"), ["j0", "j1"]),
        (("--task", "shop.tasks.send", "--limit", 1), ["j0"]),
        (("--task", "shop.tasks.send", "--error", "ValueError"), ["j0"]),
        (("--tag", "billing"), ["j1"]),
    ],
)
def test_chosen_dead_jobs_are_retried(mail, command, arguments, ids):
    assert command("rk_retry", "mail", *arguments)[0] == 0
    assert {id for id in ("j0", "j1") if mail.get(id).state == "ready"} == set(ids)


def test_ids_of_no_dead_jobs_are_an_error(mail, command):
    assert command("rk_retry", "mail", "j0", "running", "nobody")[1] == "Retried in mail: 1 job of 3.\n"
    assert command("rk_retry", "mail", "running")[0] == 1


def test_wrong_cause_is_an_error(mail, command):
    code, _, errors = command("rk_retry", "mail", "--task", "other")
    assert (code, "rk_jobs mail --state dead" in errors.replace("\n", " ")) == (1, True)


@pytest.mark.parametrize(("state", "count"), [("ready", 2), ("scheduled", 1), ("dead", 2)])
def test_jobs_of_a_state_are_deleted(mail, command, state, count):
    noun = "job" if count == 1 else "jobs"
    said = (0, f"Deleted from mail: {count} {state} {noun}.\n", "")
    assert command("rk_purge", "mail", "--state", state, "--no-input") == said
    assert getattr(mail.counts(), state) == 0
    assert mail.counts().running == 1
    assert command("rk_purge", "mail", "--state", state, "--no-input")[0] == 1


@pytest.mark.parametrize("typed", ["", "yes\n", "Mail\n"])
def test_nothing_is_deleted_unless_the_name_is_typed(mail, command, typed):
    code, output, errors = command("rk_purge", "mail", "--state", "dead", typed=typed)
    assert code == 1
    assert "mail has 2 dead jobs." in output
    assert output.endswith("\n") or typed  # the error has its own line
    assert "Nothing was deleted" in errors
    assert mail.counts().dead == 2


def test_jobs_that_come_after_the_count_are_not_deleted_without_a_question(mail, command, monkeypatch):
    mail.purge("dead")
    counts = Queue.counts

    def late(queue):
        before = counts(queue)
        queue.nack(*queue.claim(), max_attempts=1)
        return before

    monkeypatch.setattr(Queue, "counts", late)
    assert command("rk_purge", "mail", "--state", "dead", typed="mail\n")[0] == 1
    assert counts(mail).dead == 1


def test_typed_name_deletes(mail, command):
    assert command("rk_purge", "mail", "--state", "dead", typed="mail\n")[0] == 0
    assert mail.counts().dead == 0


@pytest.mark.parametrize(
    ("name", "arguments", "data"),
    [
        ("rk_pause", ("mail", 60), {"queue": "mail", "paused": True, "seconds": 60}),
        ("rk_retry", ("mail", "--no-input"), {"queue": "mail", "retried": 2}),
        ("rk_purge", ("mail", "--state", "ready", "--no-input"), {"queue": "mail", "state": "ready", "deleted": 2}),
    ],
)
def test_programs_get_json(mail, command, name, arguments, data):
    code, output, _ = command(name, *arguments, "--json")
    assert (code, json.loads(output)) == (0, data)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rk_queues", ("",)),
        ("rk_queues", ("--using", "other")),
        ("rk_pause", ("mail", "0")),
        ("rk_pause", ("mail", "nan")),
        ("rk_pause", ()),
        ("rk_retry", ("mail", "../x")),
        ("rk_retry", ("mail", "--limit", "0")),
        ("rk_jobs", ("mail", "--limit", "1001")),
        ("rk_jobs", ("mail", "--state", "finished")),
        ("rk_retry", ("mail", "j0", "--limit", "1")),
        ("rk_retry", ("mail", "j0", "--tag", "billing")),
        ("rk_purge", ("mail",)),
        ("rk_purge", ("mail", "--state", "running")),
        ("rk_purge", ("mail", "--state", "dead", "--json")),
    ],
)
def test_wrong_arguments_are_refused(mail, command, name, arguments):
    assert command(name, *arguments)[0] == 2
    assert mail.counts() == QueueCounts(1, 2, 1, 2)
    assert mail.paused() is None


@pytest.mark.parametrize("name", NAMES)
def test_queue_that_nobody_knows_is_not_taken_for_an_empty_one(mail, command, name):
    code, output, errors = command(name, "mial", *NEEDED.get(name, ()))
    assert (code, output) == (1, "")
    assert "There is no queue 'mial'. Did you mean 'mail'?" in errors


def test_queue_beyond_the_names_that_are_listed_may_exist(mail, command, monkeypatch):
    assert "may exist" not in command("rk_pause", "zzz")[2]
    monkeypatch.setattr(base, "MOST_NAMES", 2)
    assert "At most 2 names are listed, so it may exist. Add it to NAMES" in command("rk_pause", "zzz")[2]


def test_existing_names_are_listed_once(mail, command):
    errors = command("rk_pause", "zzz")[2]
    known = errors.partition("Queues: ")[2].strip().rstrip(".").split(", ")
    assert {"default", "mail"} <= set(known)
    assert len(known) == len(set(known))


def test_long_names_are_cut(kit, command):
    Queue("q" * 512).put(1)
    assert max(map(len, command("rk_queues")[1].splitlines())) < 160
    assert f"{'q' * 59}…" in command("rk_queues", "zzz")[2]


def test_queue_of_a_task_is_known_before_its_first_job(kit, command):
    from redis_kit.queues.tasks import registry

    before = dict(registry._tasks)
    try:
        from redis_kit.queues import task

        task(queue_name="unused")(test_queue_of_a_task_is_known_before_its_first_job)
        assert command("rk_pause", "unused")[0] == 0
    finally:
        registry._tasks.clear()
        registry._tasks.update(before)


@pytest.mark.parametrize("name", NAMES)
def test_exit_code_says_that_redis_is_unavailable(kit, command, name):
    kit.connect(AWAY)
    code, _, errors = command(name, "default", *NEEDED.get(name, ()))
    assert code == 69
    assert "Traceback" not in errors


@pytest.mark.parametrize("name", NAMES)
def test_exit_code_tells_that_the_settings_are_wrong(kit, command, name):
    kit.options(QUEUES={"BEAAT": 1})
    assert command(name, "default", *NEEDED.get(name, ()))[0] == 78


def test_terminal_gets_no_orders_from_a_name(kit, command):
    Queue("a\x1b[2Jb").put(1)
    code, output, _ = command("rk_queues")
    assert code == 0
    assert "a\\x1b[2Jb" in output
    assert "\x1b" not in output
    assert "\x1b" not in command("rk_pause", "a\x1b[2Jb")[1]


def test_rk_queues_tells_what_no_living_worker_can_run(kit, command):
    queue = Queue("mail")
    queue.put({"task": "shop.tasks.send\x1b", "args": [1], "kwargs": {"html": True}})
    drain("mail")
    line = command("rk_queues")[1].splitlines()[-1]
    assert line.startswith("No living worker can run shop.tasks.send")
    assert "(_, html=): 1 job of mail waits, the first for " in line
    assert "\x1b" not in line
    (found,) = json.loads(command("rk_queues", "mail", "--json")[1])
    (unknown,) = found["unknown"]
    assert (unknown["task"], unknown["jobs"], unknown["known"]) == ("shop.tasks.send\x1b", 1, False)


def test_rk_queues_names_dead_workers_that_have_jobs(mail, command, kit):
    assert "no heartbeat" not in command("rk_queues")[1]
    kit.client.zadd(mail.key("workers"), {"w1": 1})
    text = command("rk_queues")[1]
    assert "Worker w1 of mail has sent no heartbeat for " in text
    assert "its 1 job waits until another worker runs." in text


def test_numbers_in_json_are_rounded(mail, command):
    for _ in range(3):
        mail.ack(*mail.claim())
    (_, row) = json.loads(command("rk_queues", "--json")[1])
    assert row["done_per_minute"] == round(row["done_per_minute"], 3) > 0
    assert row["lateness"] == round(row["lateness"], 3)
