"""Statistics of tasks: their classes of time, what workers count, and who reads it."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from asgiref.sync import async_to_sync

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.flow import run
from redis_kit.core.metrics.families import Histogram
from redis_kit.queues import Queue
from redis_kit.queues.engine.feature import Process
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.statistics import counter, metrics
from redis_kit.queues.features.statistics import counts as run_counts
from redis_kit.queues.features.statistics.counter import TaskStatistics
from redis_kit.queues.features.statistics.inspection import read_runs
from redis_kit.queues.features.statistics.metrics import BOUNDS, RUN_TIME, TASK_FAILED, TaskMetrics
from redis_kit.queues.inspection import (
    atask_history,
    atask_stats,
    task_history,
    task_stats,
)
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from tests.queues.support.task_hours import put_back

SEND = "shop.tasks.send"
HOUR = 3600
JOB = Job("id", b"{}", "w1/c/1", due=1e9, claimed=1e9)


class Clock:
    """An event that never happens."""

    def wait(self, seconds):
        return True


@pytest.fixture
def mail(kit):
    return WorkerQueue("mail", worker="w1", about="")


def count(queue, *attempts, task=SEND):
    """Send the counts of attempts, given as run time, wait and whether they failed."""
    statistics = TaskStatistics(Process("worker", "w1", [queue], Clock()))
    for run_time, wait, failed in attempts:
        statistics.note(0, task, run_time, JOB._replace(claimed=1e9 + wait), failed=failed)
    statistics.flush()


def test_classes_hold_every_time_and_each_is_a_step_longer():
    ends = [run_counts.end_of(number) for number in range(run_counts.CLASSES)]
    assert [round(after / before, 6) for before, after in pairwise(ends)] == [1.414214] * 63
    assert [run_counts.class_of(end) for end in ends] == list(range(run_counts.CLASSES))
    assert (run_counts.class_of(0), run_counts.class_of(-1), run_counts.class_of(1e12)) == (0, 0, 63)
    assert [run_counts.end_of(run_counts.class_of(bound)) for bound in BOUNDS] == BOUNDS


def stats_of(times):
    counts = Counter()
    for seconds in times:
        run_counts.add(counts, seconds, seconds / 10, failed=False)
    return run_counts.stats(Counter(run_counts.summed([block(counts)])))


def block(counts):
    packed = run_counts.dumps(counts)
    return run_counts._BLOCK.pack(0, len(packed) // run_counts._COUNT.size) + packed


def test_percentiles_are_not_too_low_and_at_most_a_class_too_high():
    dice = random.Random(5)
    times = sorted(dice.lognormvariate(-2, 1.5) for _ in range(5000))
    stats = stats_of(times)
    for share, seconds in zip((0.5, 0.95, 0.99), stats.run_time, strict=True):
        true = times[round(share * 5000) - 1]
        assert true <= seconds <= true * 1.42
    assert stats.total == pytest.approx(sum(times), rel=0.01)


@pytest.mark.parametrize("times", [[1.003] * 38, [10.02], [0.002, 0.021], [0.001] * 200 + [60], [0.00001] * 3])
def test_percentiles_are_possible_beside_the_total(times):
    stats = stats_of(times)
    assert stats.run_time.p50 <= stats.run_time.p95 <= stats.run_time.p99
    assert stats.run_time.p99 >= stats.total / stats.runs
    assert stats.run_time.p50 >= sorted(times)[(len(times) - 1) // 2] * 0.999
    assert stats.run_time.p50 <= stats.total or stats.total == 0


def test_percentiles_of_one_attempt_are_its_time():
    assert set(stats_of([10.02]).run_time) == {10.02}


def test_counts_of_processes_and_hours_add_up(mail, kit):
    count(mail, (0.1, 0.01, False), (0.2, 0.02, True))
    put_back(mail, 2, SEND)
    count(mail, (0.1, 0.01, False), (3, 1, False))
    count(mail, (0.1, 0.01, False))
    stats = task_stats("mail")[SEND]
    assert (stats.runs, stats.failures, round(stats.total, 3)) == (5, 1, 3.5)
    assert task_stats("mail", hours=1)[SEND].runs == 3
    assert 0.1 <= stats.run_time.p50 <= 0.142
    assert 3 <= stats.run_time.p99 <= 3.2
    by_hour = task_history("mail", SEND, hours=4).stats
    assert [(each.runs, each.failures) for each in by_hour] == [(0, 0), (2, 1), (0, 0), (3, 0)]
    assert (by_hour[2].run_time.p95, by_hour[1].run_time.p95) == (None, pytest.approx(0.21, abs=0.01))
    assert task_history("mail", "unknown", hours=1).stats[0].runs == 0


def test_hours_that_are_over_and_tasks_without_newer_ones_are_dropped(mail, kit):
    count(mail, (0.1, 0, False))
    put_back(mail, 72, SEND)
    assert task_stats("mail") == {}
    count(mail, (0.1, 0, False))
    assert task_stats("mail")[SEND].runs == 1
    assert connections.client().call("HGET", mail.key("past"), SEND) == b""
    count(mail, (0.1, 0, False), task="old")
    put_back(mail, 72, task="old")
    for _ in range(20):
        count(mail, (0.1, 0, False))
    assert connections.client().call("HKEYS", mail.key("tasks")) == [SEND.encode()]
    assert 71 * HOUR < kit.client.ttl(mail.key("tasks")) <= 72 * HOUR


def test_an_earlier_clock_adds_to_the_latest_hour(mail, kit):
    count(mail, (0.1, 0, False))
    put_back(mail, -3, SEND)
    count(mail, (0.1, 0, False))
    assert task_stats("mail")[SEND].runs == 2


def test_tasks_beyond_the_limit_are_counted_together(mail, kit, monkeypatch):
    monkeypatch.setattr(counter, "MOST_TASKS", 2)
    for task in ("a", "b", "c", "d", "a"):
        count(mail, (0.1, 0, False), task=task)
    assert {task: stats.runs for task, stats in task_stats("mail").items()} == {"a": 2, "b": 1, "": 2}


@pytest.mark.parametrize("damage", [b"", b"x", b"\0\0\0\1\xff\xff", b"\xff" * 40])
@pytest.mark.parametrize("part", ["tasks", "past"])
def test_damaged_counts_begin_again(damage, part, mail, kit):
    connections.client().call("HSET", mail.key(part), SEND, damage)
    assert task_stats("mail") == {}
    count(mail, (0.1, 0, False))
    assert task_stats("mail")[SEND].runs == 1


@pytest.mark.parametrize("part", ["tasks", "past"])
def test_a_key_of_another_type_costs_only_the_statistics(part, mail, kit):
    kit.client.set(mail.key(part), "x")
    count(mail, (0.1, 0, False))
    assert task_stats("mail") == {}


def test_counts_that_a_full_server_refuses_are_sent_again(mail, kit, caplog):
    statistics = TaskStatistics(Process("worker", "w1", [mail, WorkerQueue("video", worker="w1", about="")], Clock()))
    kit.client.set(WorkerQueue("video", worker="w1", about="").key("tasks"), "x")
    for number in range(2):
        statistics.note(number, SEND, 0.1, JOB, failed=False)
    kit.client.config_set("maxmemory", 1)
    try:
        statistics.flush()
    finally:
        kit.client.config_set("maxmemory", 0)
    assert not caplog.messages
    for _ in range(2):
        statistics.flush()
    assert task_stats("mail")[SEND].runs == 1
    (line,) = caplog.messages  # of the counts that another type of key refuses for good
    assert line.startswith("Counts for the statistics of tasks were dropped: The key ")


def test_counts_wait_while_the_server_does_not_answer(mail, kit, monkeypatch):
    statistics = TaskStatistics(Process("worker", "w1", [mail], Clock()))
    statistics.note(0, SEND, 0.1, JOB, failed=False)
    with monkeypatch.context() as away:
        away.setattr(WorkerQueue, "run_flow", unanswered(indeterminate=False))
        statistics.flush()
    statistics.flush()
    assert task_stats("mail")[SEND].runs == 1
    statistics.note(0, SEND, 0.1, JOB, failed=False)
    with monkeypatch.context() as away:
        away.setattr(WorkerQueue, "run_flow", unanswered(indeterminate=True))
        statistics.flush()  # the server may have added these
    statistics.flush()
    assert task_stats("mail")[SEND].runs == 1


def unanswered(*, indeterminate):
    def run_flow(*args):
        raise RedisUnavailable("gone", indeterminate=indeterminate)

    return run_flow


def test_counts_of_all_queues_and_shards_take_one_round_trip(kit, trips):
    pytest.importorskip("redis_kit.queues.features.shards.feature")
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 2}}})
    sources = [WorkerQueue(name, worker="w1", about="") for name in (*spread().names("mail"), "video")]
    statistics = TaskStatistics(Process("worker", "w1", sources, Clock()))
    for _ in range(2):
        for number in range(3):
            statistics.note(number, SEND, 0.1, JOB, failed=False)
        trips.clear()
        statistics.flush()
    assert len(trips) == 1
    statistics.flush()
    assert len(trips) == 1
    assert task_stats("mail")[SEND].runs == 4


@pytest.mark.parametrize("hours", [0, 73, 1.5, True, "1", None])
def test_hours_out_of_range_are_refused(hours, kit):
    with pytest.raises(InvalidValue, match="hours must be a whole number from 1 to 72"):
        task_stats("mail", hours=hours)


def test_twin_returns_the_same(mail, kit):
    count(mail, (0.1, 0, False))
    assert async_to_sync(atask_stats)("mail") == task_stats("mail")
    assert async_to_sync(atask_history)("mail", SEND) == task_history("mail", SEND)


def test_metrics_are_a_histogram_of_the_present_hour(mail, kit):
    Queue("mail").put("x")
    count(mail, (0.1, 0, False), (0.003, 0, False), (2000, 0, True))
    samples = run(TaskMetrics().read("default", 100), connections.client())
    ((labels, value),) = [(sample.labels, sample.value) for sample in samples if sample.metric == RUN_TIME]
    assert labels == ("mail", SEND)
    assert isinstance(value, Histogram)
    counts = dict(value.buckets)
    assert (counts[0.001], counts[0.004], counts[0.256], counts[BOUNDS[-1]], counts[float("inf")]) == (0, 1, 2, 2, 3)
    assert value.total == pytest.approx(2000.103)


def test_task_that_did_not_run_in_this_hour_counts_from_zero(mail, kit):
    Queue("mail").put("job")
    count(mail, (0.1, 0, True))
    put_back(mail, 2, SEND)
    assert task_counters() == (0, 0)
    count(mail, (0.1, 0, True), (0.1, 0, True))
    assert task_counters() == (2, 2)


@pytest.mark.parametrize(("minute", "shown"), [(60 * 8, 0), (60 * 8 + 1, 1)])
def test_counters_of_tasks_are_seen_to_restart(minute, shown, mail, kit):
    count(mail, (0.1, 0, True))
    put_back(mail, 1, SEND)
    count(mail, (0.1, 0, True))
    runs = run(read_runs(["mail"], 2, "default"), connections.client())
    histogram, failures = [sample.value for sample in metrics.samples(runs, ["mail"], minute, 100)]
    assert (histogram.buckets[-1][1], failures) == (shown, shown)


def task_counters():
    """Return the attempts and the failures of the only task, as Prometheus gets them."""
    samples = run(TaskMetrics().read("default", 100), connections.client())
    (runs,) = [sample.value.buckets[-1][1] for sample in samples if sample.metric == RUN_TIME]
    (failures,) = [sample.value for sample in samples if sample.metric == TASK_FAILED]
    return runs, failures
