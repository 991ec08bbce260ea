"""What people see of schedules and do with them: the list, the next ticks, pause, resume, run, rows."""

import json
import re
import sys
from datetime import timedelta
from itertools import count

import pytest
from django.db import connection
from django.utils import timezone

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.queues import InvalidSchedule, Queue, framework, periodic
from redis_kit.queues.features.schedules import control, inspection
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.definition import made
from redis_kit.queues.features.schedules.store import Schedules
from redis_kit.queues.models import Schedule
from redis_kit.queues.reports import stats
from redis_kit.queues.tasks import enqueue
from redis_kit.testing.jobs import drain
from tests.fixtures.dashboard import ADMIN
from tests.queues.support.scheduled import declared, due_now, overdue, scheduler, states, tick
from tests.queues.support.tasks import done, fail, remember

pytestmark = pytest.mark.django_db
TASK = remember.module_path


@pytest.fixture
def commits(django_capture_on_commit_callbacks):
    """Run what waits for the commit."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def info(name):
    return next(each for each in inspection.listed().schedules if each.name == name)


def test_tick_adds_the_job_and_the_list_shows_it(kit, shell):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    declared(TASK, "hourly", every=3600, args=[7])
    worker = scheduler()
    tick(worker)
    assert states()["hourly"].runs == 0
    due_now(kit, "hourly")
    tick(worker)
    found = states()["hourly"]
    assert (found.runs, found.missed, found.outcome) == (1, 1, "added")
    assert drain() == 1
    assert done[-1] == 7
    shown = info("hourly")
    assert (shown.source, shown.paused, shown.problem) == ("code", False, "")
    assert 0 < shown.due - inspection.listed().now <= 3_600_000
    assert inspection.outcomes([shown]) == {"hourly": "SUCCESSFUL"}
    titles, listed = shell("rk_schedule")[1].splitlines()
    assert titles.split()[3:] == ["LAST", "TICK", "LATE", "RUNS", "SKIPPED", "MISSED", "STATE"]
    assert " ago: added " in listed  # of the tick, and not what the schedule does now
    assert listed.endswith(" on")


def test_tick_of_an_unknown_task_is_left_to_others_and_shown(kit, caplog):
    declared("shop.tasks.nope", "hourly", every=3600)
    worker = scheduler()
    tick(worker)
    due_now(kit, "hourly")
    tick(worker)
    assert "Schedule 'hourly' can't run here and is left to other workers" in caplog.text
    assert info("hourly").problem.startswith("unknown task 'shop.tasks.nope'")
    tick(worker)
    assert caplog.text.count("can't run here") == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_schedule_without_its_code_is_forgotten_after_an_hour(kit, enabled):
    declared(TASK, "hourly", every=3600, enabled=enabled)
    schedules, worker = Schedules("all"), scheduler()
    tick(worker)
    (look,) = (each.look for each in inspection.listed().schedules)
    assert look <= (kit.client.time()[0] + 86_401) * 1000
    seen = kit.client.hget(schedules.key("versions"), "v1").split()
    kit.client.hset(schedules.key("versions"), "v1", " ".join(str(int(each) - 3_700_000) for each in seen))
    tick(worker)
    assert inspection.listed().total == 1
    kit.client.zadd(schedules.key("due"), {"hourly": 1})
    tick(worker)
    assert inspection.listed().total == 0


def test_stalled_worker_takes_over_from_a_release_that_came_and_went(kit):
    schedules, worker = Schedules("all"), scheduler()
    worker._declared, worker._version = {"hourly": made(name="hourly", task=TASK, every=3600).stored()}, "v0"
    tick(worker)
    declared(TASK, "hourly", every=60)
    seen = kit.client.hget(schedules.key("versions"), "v1").split()
    kit.client.hset(schedules.key("versions"), "v1", " ".join(str(int(each) - 40_000) for each in seen))
    tick(worker)
    assert info("hourly").definition.every == 60_000
    worker._looked -= 40_000
    tick(worker)
    assert info("hourly").definition.every == 3_600_000


def test_release_that_comes_back_after_an_hour_keeps_its_schedules(kit):
    releases = [scheduler() for _ in range(3)]
    definition = made(name="hourly", task=TASK, every=3600, args=[7]).stored()
    for release, version in zip(releases, "ABA", strict=True):
        release._declared, release._version = {"hourly": definition}, version
    for release in releases[:2]:
        tick(release)
        tick(release)
    schedules, state = Schedules("all"), states()["hourly"]
    kit.client.hset(schedules.key("state"), "hourly", state._replace(last=state.next - 3 * 3_600_000, runs=7).dumps())
    kit.client.zadd(schedules.key("due"), {"hourly": 1})
    for version, seen in kit.client.hgetall(schedules.key("versions")).items():
        earlier = b" ".join(b"%d" % (int(each) - 2 * 3_600_000) for each in seen.split())
        kit.client.hset(schedules.key("versions"), version, earlier)
    for _ in range(3):
        tick(releases[2])
    assert states()["hourly"].runs == 8
    assert Queue("default").counts().ready == 1


def test_pause_is_kept_in_the_database_and_resume_ends_it(kit, commits, shell):
    declared(TASK, "hourly", every=3600)
    with commits():
        assert shell("rk_schedule", "pause", "hourly") == (0, "Paused: hourly.\n", "")
    worker = scheduler()
    tick(worker)
    assert (info("hourly").paused, info("hourly").due, info("hourly").source) == (True, None, "both")
    kit.client.delete(*kit.keys())
    declared(TASK, "hourly", every=3600)
    control.load_rows()
    tick(worker)
    assert info("hourly").paused
    with commits():
        assert shell("rk_schedule", "resume", "hourly")[1] == "Resumed: hourly.\n"
    tick(worker)
    assert (info("hourly").paused, info("hourly").source) == (False, "code")
    assert info("hourly").due is not None
    assert not Schedule.objects.exists()
    assert states()["hourly"].runs == 0


def test_schedules_that_wait_for_a_first_worker_are_not_missed(kit, boss, shell):
    assert shell("rk_schedule", "--next", "2")[1] == "No schedule ticks within 24 hours.\n"
    for number in range(3):
        declared(TASK, f"hourly{number}", every=3600)
    declared(TASK, "off", every=3600, enabled=False)
    assert shell("rk_schedule", "--next", "2")[1] == "No worker has taken over 3 schedules yet: start rk_worker.\n"
    assert "No worker has taken over new schedules yet" in boss.get(f"{ADMIN}schedule/").content.decode()
    tick(scheduler())
    assert "hourly" in shell("rk_schedule", "--next", "2")[1]
    assert "No worker has taken over" not in boss.get(f"{ADMIN}schedule/").content.decode()


def test_unknown_name_gets_the_one_that_was_meant(kit, shell):
    declared(TASK, "hourly", every=3600)
    code, _, errors = shell("rk_schedule", "pause", "hourli")
    assert (code, errors) == (1, "CommandError: There is no schedule hourli. Did you mean 'hourly'?\n")
    assert shell("rk_schedule", "pause")[0] == 2
    assert shell("rk_schedule", "list", "hourly")[0] == 2
    assert shell("rk_schedule", "--next", "0")[0] == 2
    assert "--next belongs to list, not to run" in shell("rk_schedule", "run", "x", "--next", "1")[2]
    assert "--dry-run belongs to import, not to list" in shell("rk_schedule", "--dry-run")[2]
    code, _, errors = shell("rk_schedule", "run", "a\udcff")
    assert (code, "is not valid Unicode" in errors) == (2, True)


def test_run_adds_a_job_now_unless_one_has_not_ended(kit, shell):
    declared(TASK, "hourly", every=3600, args=["by hand"])
    code, said, _ = shell("rk_schedule", "run", "hourly", "--json")
    assert (code, json.loads(said)["queue"]) == (0, "default")
    with pytest.raises(InvalidValue, match="has not ended"):
        control.run("hourly")
    drain()
    assert done[-1] == "by hand"
    control.run("hourly")


def test_queue_that_a_run_uses_first_is_listed(kit, commits):
    with commits():
        Schedule.objects.create(name="row", task=TASK, every=3600, queue="fresh", args=[1])
    control.run("row")
    assert "fresh" in stats.queue_names()


def test_schedule_that_could_not_run_does_so_once_its_row_is_corrected(kit, commits):
    with commits():
        row = Schedule.objects.create(name="row", task=TASK, every=3600, queue="x" * 100, args=[1])
        gone = Schedule.objects.create(name="gone", task="shop.tasks.nope", every=3600)
    worker = scheduler()
    tick(worker)
    for name in ("row", "gone"):
        due_now(kit, name)
    tick(worker)
    assert info("row").problem.startswith("InvalidName: queue_name is")
    row.queue = ""
    with commits():
        row.save()
        gone.delete()
    with pytest.raises(InvalidValue, match=r"There is no schedule gone\. Did you mean 'row'\?|Workers declare"):
        control.turn("gone", on=False)
    tick(worker)
    assert (info("row").problem, info("row").state.runs, inspection.listed().total) == ("", 1, 1)
    due_now(kit, "row")
    tick(worker)
    assert states()["row"].runs == 2


def test_list_and_next_ticks_are_in_plain_words(kit, shell):
    declared(TASK, "nightly", cron="0 4 * * *", timezone="Europe/Berlin")
    declared(fail.module_path, "quick", every=28_800)
    assert shell("rk_schedule")[1].count("\n") == 3
    tick(scheduler())
    text = shell("rk_schedule")[1]
    assert "every day at 04:00 Europe/Berlin" in text
    assert "every 8 h" in text
    listed = shell("rk_schedule", "--next", "3")[1].splitlines()
    assert len(listed) == 4
    assert all(" in " in line for line in listed[1:])
    found = json.loads(shell("rk_schedule", "--next", "9", "--json")[1])
    assert [each["schedule"] for each in found].count("quick") == 3
    assert [each["in"] for each in found] == sorted(each["in"] for each in found)
    plain = {each["schedule"]: each for each in json.loads(shell("rk_schedule", "--json")[1])}
    assert (plain["quick"]["runs"], plain["nightly"]["when"]) == (0, "every day at 04:00 Europe/Berlin")


def test_process_without_the_package_of_cron_shows_the_next_tick(kit, shell, monkeypatch):
    declared(TASK, "nightly", cron="0 4 * * *", timezone="Europe/Berlin")
    tick(scheduler())
    monkeypatch.setitem(sys.modules, "cronsim", None)
    listing = inspection.listed("due")
    assert inspection.next_ticks(listing, 9) == [(listing.schedules[0].due, listing.schedules[0])]


@pytest.mark.parametrize("arguments", [(), ("--next", "3")])
def test_overdue_schedule_is_named_and_the_command_fails(kit, shell, arguments):
    for name in ("quick", "rare", "broken"):
        declared(TASK if name != "broken" else "shop.tasks.gone", name, every=5 if name == "quick" else 3600, args=[7])
    worker = scheduler()
    tick(worker)
    assert shell("rk_schedule", *arguments)[0] == 0
    overdue(kit, "quick", 8)  # a claim of a dead supervisor takes that long
    assert shell("rk_schedule", *arguments)[0] == 0
    overdue(kit, "quick", 46)
    code, said, errors = shell("rk_schedule", *arguments)
    assert (code, "overdue by 4" in said) == (1, True)
    assert re.fullmatch(r"CommandError: 1 schedule is overdue by 4\d(\.\d)? s: no worker is running\.\n", errors)
    code, said, _ = shell("rk_schedule", *arguments, "--json")
    assert code == 1
    assert arguments or [46 <= each["overdue"] < 60 for each in json.loads(said) if each["overdue"]] == [True]
    kit.client.zadd(Schedules("all").key("watchers"), {"s": 10**15})
    assert "see the log of the workers" in shell("rk_schedule", *arguments)[2]
    overdue(kit, "broken", 50)
    assert "2 schedules are overdue" in shell("rk_schedule", *arguments)[2]


def test_command_says_that_there_are_none(kit, shell):
    assert "There are no schedules." in shell("rk_schedule")[1]
    assert shell("rk_schedule", "--next", "3")[1] == "No schedule ticks within 24 hours.\n"
    assert shell("rk_schedule", "--json")[1] == "[]\n"


def test_saved_row_is_a_schedule_and_deleted_it_is_none(kit, commits):
    with commits():
        row = Schedule.objects.create(name="row", task=TASK, every=60, args=[1])
    tick(scheduler())
    assert (info("row").source, info("row").definition.every) == ("database", 60_000)
    with commits():
        row.delete()
    tick(scheduler())
    assert inspection.listed().total == 0


def test_row_with_another_name_is_another_schedule(kit, commits):
    with commits():
        row = Schedule.objects.create(name="old", task=TASK, every=60, args=[1])
    for name in ("new", "New"):
        row.name = name
        with commits():
            row.save()
        tick(scheduler())
        assert [each.definition.name for each in inspection.listed().schedules] == [name]
    row = Schedule.objects.get(name="New")
    row.name = "last"
    with commits():
        row.save()
        row.delete()
    tick(scheduler())
    assert inspection.listed().total == 0


def test_rows_are_stored_again_and_what_is_none_any_more_is_removed(kit):
    Schedule.objects.bulk_create(
        [Schedule(name=f"row{n}", task=TASK, every=60, changed=timezone.now()) for n in range(3)]
    )
    Schedule.objects.filter(name="row2").update(cron="nonsense", every=None)
    schedules = Schedules("all")
    schedules.run_flow(store.store([("gone", "{}")]))
    control.load_rows()
    assert set(schedules.run_flow(store.stored())[1]) == {"row0", "row1"}


def test_rows_that_redis_refuses_are_said_to_be_refused(kit, monkeypatch, caplog):
    schedules = Schedules("all")
    Schedule.objects.bulk_create([Schedule(name="row", task=TASK, every=60, changed=timezone.now())])
    kit.client.set(schedules.key("names"), "of another type")
    control.load_rows()
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith("The schedules of the database can't be stored in Redis: ")
    assert repr(schedules.key("names")) in said


def test_row_that_no_worker_could_use_is_not_saved_by_code(kit):
    with pytest.raises(InvalidSchedule, match="five fields"):
        Schedule.objects.create(name="row", task=TASK, cron="61 * * * *")


def test_row_is_saved_while_redis_is_away_and_workers_store_it_later(kit, commits, caplog):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    with commits():
        Schedule.objects.create(name="row", task=TASK, every=60)
    assert "Schedule 'row' is stored in Redis within a minute" in caplog.text
    assert Schedule.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_missing_table_means_no_rows_and_pause_says_so(kit):
    declared(TASK, "hourly", every=3600)
    table = Schedule._meta.db_table
    with connection.schema_editor() as editor:
        editor.alter_db_table(Schedule, table, "elsewhere")
    try:
        control.load_rows()
        with pytest.raises(InvalidValue, match=rf"(?s){table}.*Is the app migrated\?"):
            control.turn("hourly", on=False)
    finally:
        with connection.schema_editor() as editor:
            editor.alter_db_table(Schedule, "elsewhere", table)


def test_tick_for_another_backend_goes_through_a_job(kit, settings):
    settings.TASKS = {
        "default": {"BACKEND": "redis_kit.queues.backend.RedisTaskBackend", "QUEUES": []},
        "now": {"BACKEND": f"{framework.BUNDLED}.immediate.ImmediateBackend"},
    }
    from tests.queues.support import scheduled_elsewhere

    with pytest.raises(InvalidSchedule, match="overlap='skip' needs to know when a job ends"):
        periodic(every=3600, overlap="skip")(scheduled_elsewhere.note)
    declared(scheduled_elsewhere.note.module_path, "foreign", every=3600, args=["x"])
    worker = scheduler()
    tick(worker)
    due_now(kit, "foreign")
    tick(worker)
    assert Queue("default").counts().ready == 1
    assert drain() == 1
    assert scheduled_elsewhere.noted == ["x"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"every": 5}, "every 5 s"),
        ({"every": timedelta(minutes=90)}, "every 90 min"),
        ({"every": 86_400}, "every 1 d"),
        ({"every": 0.5}, "every 0.5 s"),
        ({"cron": "* * * * *"}, "every minute UTC"),
        ({"cron": "*/10 * * * *"}, "every 10 minutes UTC"),
        ({"cron": "5 * * * *"}, "every hour at minute 5 UTC"),
        ({"cron": "30 7 * * MON-FRI,0"}, "on Monday–Friday, Sunday at 07:30 UTC"),
        ({"cron": "0 0 1 * *"}, "on day 1 of each month at 00:00 UTC"),
        ({"cron": "0 0 L * *"}, "on the last day of each month at 00:00 UTC"),
        ({"cron": "0 4 1,15 * 1-5/2"}, "cron 0 4 1,15 * 1-5/2 UTC"),
    ],
)
def test_times_are_said_in_words(given, said):
    assert inspection.when(made(name="x", task="t", **given)) == said


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_tick_is_added_once_whichever_answer_is_lost(kit, lost):
    declared(TASK, "hourly", every=3600, args=[1], overlap="allow")
    tick(scheduler())
    due_now(kit, "hourly")
    calls = count(1)

    def call(send):
        answer = send()
        if next(calls) == lost:
            raise RedisUnavailable("the answer was lost", indeterminate=True)
        return answer

    worker = scheduler(call=call)
    tick(worker)
    kit.client.zadd(Schedules("all").key("due"), {"hourly": 1}, xx=True)  # the claim is over
    tick(worker)
    tick(worker)
    assert Queue("default").counts().ready == 1
    assert (states()["hourly"].outcome, states()["hourly"].runs) == ("added", 1)


def test_job_that_failed_runs_again_at_the_next_tick(kit):
    declared(fail.module_path, "hourly", every=3600, args=["x"])
    worker, queue = scheduler(), Queue("default")
    tick(worker)
    control.run("hourly")
    (job,) = queue.claim()
    queue.nack(job, delay=600)
    due_now(kit, "hourly")
    tick(worker)
    found = states()["hourly"]
    assert (found.runs, found.skips, found.outcome, found.job) == (1, 0, "retried", job.id)
    assert (queue.counts().ready, queue.counts().scheduled) == (1, 0)
    queue.nack(*queue.claim(), delay=600)
    assert control.run("hourly") == ("default", job.id)


class Wordless(Exception):
    """An error whose text can't be read."""

    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), Wordless()])
def test_code_of_the_project_that_exits_does_not_end_the_supervisor(kit, monkeypatch, caplog, error):
    def failing(*args, **kwargs):
        raise error

    declared(TASK, "broken", every=3600, args=[1])
    declared(fail.module_path, "fine", every=3600, args=["x"])
    worker = scheduler()
    tick(worker)
    for name in ("broken", "fine"):
        due_now(kit, name)
    packed = enqueue.packed

    def pack(task, *call):
        return failing() if task.module_path == TASK else packed(task, *call)

    monkeypatch.setattr(enqueue, "packed", pack)
    tick(worker)
    assert (states()["fine"].runs, states()["broken"].runs) == (1, 0)
    assert type(error).__name__ in info("broken").problem
    assert "Schedule 'broken' can't run here" in caplog.text


def test_rows_are_read_at_the_start_after_a_loss_and_each_minute(kit):
    starts = []
    worker = scheduler(fork=starts.append)
    for _ in range(3):
        tick(worker)
    assert len(starts) == 1  # though nothing is stored, as before the migration
    control.load_rows()
    tick(worker)
    kit.client.delete(*kit.keys())
    for _ in range(3):
        tick(worker)
    assert len(starts) == 2
    declared(TASK, "hourly", every=3600, args=[1])
    tick(worker)
    worker._read -= 61_000
    for _ in range(3):
        tick(worker)
    assert len(starts) == 3
