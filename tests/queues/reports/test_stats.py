"""How late attempts begin, counted with the claims by the minute; and the workers of queues."""

import pytest
from django.utils.functional import lazystr

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import single
from redis_kit.queues import Queue
from redis_kit.queues.engine import calls
from redis_kit.queues.inspection import control_worker, list_workers, queue_counts, queue_stats
from redis_kit.queues.reports.stats import QUEUE_STATS
from tests.fixtures.kit import SERVERS
from tests.fixtures.process import wait_for
from tests.queues.support.claiming import claim_again
from tests.queues.support.minutes import count


@pytest.fixture
def queue(any_kit):
    return Queue("mail")


def hasten(kit, queue, id, seconds):
    """Let a job have been due so many seconds earlier."""
    priority, attempts, crashes, rest = kit.client.hget(queue.key("jobs"), id).split(" ", 3)
    due, body = rest.split("\n", 1)
    record = f"{priority} {attempts} {crashes} {int(due) - int(seconds * 1000)}\n{body}"
    kit.client.hset(queue.key("jobs"), id, record)


def late(queue, minutes=3):
    """Return how many attempts began, by how much they were late together, and at most."""
    report = queue_stats([queue.name], minutes=minutes)[queue.name]
    total = sum(begun * mean for begun, mean in zip(report.begun, report.lateness, strict=True))
    return sum(report.begun), total, max(report.latest)


def test_lateness_is_the_time_from_when_a_job_was_due_to_its_claim(queue, any_kit, twin):
    for id, seconds in (("a", 2), ("b", 4), ("c", 0)):
        queue.put(id, id=id)
        hasten(any_kit, queue, id, seconds)
    jobs = twin(queue.claim, 2)
    jobs += twin(queue.claim, 2, done=jobs)
    begun, total, most = late(queue)
    assert begun == 3
    assert 5.99 <= total < 12  # the time of a put is rounded up, that of a claim down
    assert 3.99 <= most < 8
    assert sum(queue_stats(["mail"], minutes=3)["mail"].done) == 2


def test_job_in_time_is_hardly_late_and_one_that_waits_does_not_count(queue):
    queue.put("later", delay=60)
    queue.put("soon", delay=0.05)
    wait_for(lambda: queue.claim(5))
    begun, total, most = late(queue)
    assert begun == 1
    assert total == pytest.approx(most)
    assert 0 <= most < 5


def test_retry_is_due_when_its_pause_ends(queue, any_kit):
    queue.put(1, id="a")
    hasten(any_kit, queue, "a", 100)
    queue.nack(*queue.claim(), max_attempts=2)
    queue.claim()
    begun, total, most = late(queue)
    assert begun == 2
    assert 99.9 <= total < 110
    assert 99.9 <= most < 110


def test_job_whose_worker_died_is_due_again_at_that_moment(queue, any_kit):
    queue.put(1, id="a")
    hasten(any_kit, queue, "a", 100)
    queue.claim(worker="dead")
    calls.reap(queue.key(""), "dead", ["a"]).run(connections.client())
    assert queue_stats(["mail"])["mail"].wait < 10
    queue.claim()
    begun, total, _ = late(queue)
    assert begun == 2
    assert 99.9 <= total < 110


def test_overdue_scheduled_job_waits_as_a_ready_one_does(queue, any_kit):
    def wait():
        return queue_stats(["mail"])["mail"].wait

    queue.put("later", id="later", delay=60)
    assert wait() is None
    now = any_kit.client.time()[0] * 1000
    any_kit.client.zadd(queue.key("scheduled"), {"later": now - 100_000})
    assert 99 <= wait() < 120
    queue.put("ready", id="ready")
    assert 99 <= wait() < 120
    hasten(any_kit, queue, "ready", 500)
    assert 499 <= wait() < 520
    queue.claim(2)
    assert wait() is None


def test_claim_that_is_repeated_counts_once(queue):
    queue.put_many(range(3))
    for again in (False, True, True):
        claim_again(queue, "token", 2, again=again)
    assert late(queue)[0] == 2


def test_claim_without_jobs_counts_nothing(queue, any_kit):
    queue.claim()
    assert late(queue) == (0, 0, 0)
    assert not any_kit.client.exists(queue.key("minutes"))


# Without a Cluster, whose statistics are those of several servers.
@pytest.mark.parametrize("any_kit", [server for server in SERVERS if server != "cluster"], indirect=True)
def test_claim_writes_its_numbers_once_however_many_jobs(queue, any_kit):
    def writes():
        # MONITOR does not show calls by scripts.
        stats = any_kit.client.info("commandstats")
        return [stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("hset", "hincrby", "rpush")]

    def since():
        return [now - then for now, then in zip(writes(), before, strict=True)]

    queue.claim()
    queue.put_many(range(50))
    before = writes()
    jobs = queue.claim(20)
    assert since() == [2, 0, 0]  # records, and numbers
    queue.claim(20, done=jobs)
    assert since() == [4, 1, 1]  # and the number of jobs done, and what it answered


def test_numbers_of_before_go_on(queue, any_kit):
    queue.put(1)
    minute = queue_stats(["mail"])["mail"].minute
    for one in (minute, minute + 1):  # whichever it is by then
        count(queue, any_kit, one, done=5, failed=2, begun=(3, 6 * 10**6, 4 * 10**6))
    report = queue_stats(["mail"], minutes=1)["mail"]
    assert (report.done, report.failed, report.begun, report.lateness, report.latest) == ([5], [2], [3], [2000], [4000])
    queue.ack(*queue.claim())
    report = queue_stats(["mail"], minutes=1)["mail"]
    assert (report.done, report.failed, report.begun, report.latest) == ([6], [2], [4], [4000])


def test_numbers_of_long_ago_go_minute_by_minute(queue, any_kit):
    key, minute = queue.key("minutes"), any_kit.client.time()[0] // 60
    kept = [4 * (minute - before) for before in (1, 4000)]
    any_kit.client.hset(key, mapping=dict.fromkeys([*range(100), "x", *kept], 1))
    for _ in range(200):
        any_kit.client.hdel(key, *(4 * (minute + later) for later in (0, 1, 2)))
        queue.put(1)
        queue.ack(*queue.claim())
        if any_kit.client.hlen(key) <= 6:
            break
    assert any_kit.client.hmget(key, kept) == ["1", "1"]
    assert any_kit.client.hlen(key) <= 6
    assert any_kit.client.pttl(key) > 71 * 3_600_000


@pytest.mark.parametrize("value", ["", "x", "1 2 3", "9" * 400, "1.5", str(2**63 - 1)])
def test_numbers_that_make_no_sense_stop_no_claim_and_no_report(queue, any_kit, value):
    queue.put_many(range(2))
    minute = queue_stats(["mail"])["mail"].minute
    for field in range(4 * minute, 4 * minute + 7):
        any_kit.client.hset(queue.key("minutes"), field, value)
    assert len(queue_stats(["mail"], minutes=5)["mail"].done) == 5
    queue.ack(*queue.claim())
    queue.nack(*queue.claim())
    report = queue_stats(["mail"], minutes=5)["mail"]
    assert (sum(report.done), sum(report.failed), sum(report.begun)) == (1, 1, 2)


@pytest.mark.parametrize(
    "record", ["junk", "0 0 0 0\n1", "0 0 0 99999999999999999999\n1", "0 0 0 " + "9" * 400 + "\n1", "-100 99 0 5\n1"]
)
def test_record_whose_time_makes_no_sense_is_claimed_and_harms_no_number(queue, any_kit, record):
    queue.put(1, id="a")
    any_kit.client.hset(queue.key("jobs"), "a", record)
    assert len(queue.claim()) == 1
    begun, total, _ = late(queue)
    assert begun <= 1
    assert total >= 0
    queue.put(1, id="b")
    assert len(queue.claim()) == 1
    assert late(queue)[0] == begun + 1


def test_each_minute_of_three_days_is_in_its_place(queue, any_kit):
    ages = (4319, 2000, 1999, 1001, 1000, 999, 1)
    now = queue_stats(["mail"])["mail"].minute
    for age in ages:
        count(queue, any_kit, now - age, done=age, failed=1, begun=(age + 1, 0, 0))
    report = queue_stats(["mail"], minutes=4320)["mail"]
    assert len(report.done) == len(report.failed) == len(report.begun) == 4320
    places = [4319 - age + now - report.minute for age in ages if age < 4319]  # the oldest may be over by now
    assert [(report.done[place], report.failed[place], report.begun[place]) for place in places] == [
        (age, 1, age + 1) for age in ages if age < 4319
    ]
    assert sum(report.failed) in (len(ages), len(ages) - 1)


def test_sum_of_a_backlog_is_exact_beyond_what_fifteen_digits_hold(queue, any_kit):
    queue.put_many(range(2))
    minute = queue_stats(["mail"])["mail"].minute
    for one in (minute, minute + 1):
        count(queue, any_kit, one, begun=(9, 10**15, 10))
    queue.claim(2)
    begun, total, _ = late(queue, minutes=1)
    assert begun == 11
    assert 10**12 <= total < 10**12 + 60


@pytest.mark.parametrize("name", ["mail", lazystr("mail")])
@pytest.mark.parametrize("read", [queue_stats, queue_counts, list_workers])
def test_single_name_is_not_taken_for_a_list_of_letters(kit, read, name):
    with pytest.raises(InvalidValue, match="Give a list of queues, not 'mail'"):
        read(name)


def test_worker_whose_lease_is_over_is_dead_and_takes_no_command(kit):
    queue = Queue("mail")
    queue.put(1)
    queue.claim(worker="w1")
    assert [worker.state for worker in list_workers(["mail"])] == [""]
    kit.client.zadd(queue.key("workers"), {"w1": 1})
    (worker,) = list_workers(["mail"])
    assert (worker.state, len(worker.jobs)) == ("dead", 1)
    assert control_worker("w1", "stop") is False


def test_minutes_without_anything_are_no_part_of_a_reply(queue, any_kit):
    step = QUEUE_STATS(queue.key(""), 60)
    assert len(queue.run_flow(single(step))) == 12
    queue.put("a")
    queue.ack(*queue.claim())
    assert 12 < len(queue.run_flow(single(step))) <= 24  # two minutes if one has just ended
    stats = queue_stats(["mail"], minutes=60)["mail"]
    assert (len(stats.done), sum(stats.done), sum(stats.begun)) == (60, 1, 1)
