"""The numbers of a queue by hour: which hours are added up, when, and what lasts."""

import struct

import pytest
from asgiref.sync import async_to_sync

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue
from redis_kit.queues import Queue
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.statistics.counter import AT_ONCE, FOLD_HOURS, HourFolding
from redis_kit.queues.features.statistics.counts import KEPT_HOURS
from redis_kit.queues.inspection import aqueue_history, queue_history
from redis_kit.queues.keys import QueueKeys
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

HOUR = 3600


@pytest.fixture
def mail(kit):
    return QueueKeys.of(Queue("mail").key(""))


def now(kit):
    return kit.client.time()[0] // HOUR


def counted(kit, keys, hour, *, done=0, failed=0, begun=0, late=0, latest=0):
    """Count in the first and the last minute of an hour."""
    for minute in (60 * hour, 60 * hour + 59):
        packed = struct.pack(">QQQ", begun, late, latest)
        kit.client.hset(keys.minutes, mapping={4 * minute: done, 4 * minute + 1: failed, 4 * minute + 2: packed})


def fold(keys):
    """Add up past hours, as often as there are some left."""
    base = keys.minutes.removesuffix("minutes")
    while FOLD_HOURS(base, AT_ONCE, KEPT_HOURS).run(connections.client()):
        pass


def test_hours_are_the_sums_of_their_minutes(kit, mail):
    hour = now(kit)
    counted(kit, mail, hour - 2, done=3, failed=1, begun=4, late=6000, latest=2500)
    before = queue_history("mail", hours=72)
    assert (before.hour, len(before.done)) == (now(kit), 72)
    assert [each[-3 - (before.hour - hour)] for each in before[1:]] == [6, 2, 8, 1.5, 2.5]
    assert [sum(each) for each in before[1:]] == [6, 2, 8, 1.5, 2.5]
    fold(mail)
    kit.client.delete(mail.minutes)
    after = queue_history("mail", hours=72)
    assert [sum(each) for each in after[1:]] == [6, 2, 8, 1.5, 2.5]
    assert async_to_sync(aqueue_history)("mail", hours=72) == after


def test_jobs_of_the_present_hour_are_counted_at_once(kit):
    queue = Queue("mail")
    queue.put_many(range(5))
    for job in queue.claim(3):
        queue.ack(job)
    assert [sum(each) for each in queue_history("mail", hours=2)[1:4]] == [3, 0, 3]


def test_supervisor_adds_up_past_hours_and_an_hour_once(kit, mail):
    counted(kit, mail, now(kit) - 1, done=2)
    source = WorkerQueue("mail", worker="w1", about="")
    folding = HourFolding([source])
    for _ in range(10):
        folding.run()
    stored = kit.client.hgetall(mail.hours)
    assert len(stored) == 2
    counted(kit, mail, now(kit) - 1, done=50)  # which can't happen: the hour is over
    folding.run()
    assert kit.client.hgetall(mail.hours) == stored


def test_hours_last_for_90_days(kit, mail):
    hour = now(kit)
    kit.client.hset(
        mail.hours, mapping={hour - 2159: "1 0 1 0 0", **{hour - 2160 - n: "7 0 7 0 0" for n in range(200)}}
    )
    counted(kit, mail, hour - 70, done=1)
    for last in range(hour - 71, hour):
        kit.client.hset(mail.hours, "folded", last - 1)
        fold(mail)
    assert sum(queue_history("mail", hours=2160).done) == 3
    assert kit.client.hlen(mail.hours) < 10
    assert 2159 * HOUR < kit.client.ttl(mail.hours) <= 2160 * HOUR


def test_queue_without_numbers_gets_no_key(kit, mail):
    fold(mail)
    assert not kit.client.exists(mail.hours)


@pytest.mark.parametrize("folded", ["x", "-5", "9" * 15, "nan"])
def test_damaged_mark_and_a_clock_that_was_set_back_lose_no_hour(kit, mail, folded):
    counted(kit, mail, now(kit) - 5, done=1)
    kit.client.hset(mail.hours, "folded", folded)
    assert sum(queue_history("mail").done) == 2
    fold(mail)
    assert sum(queue_history("mail").done) == 2
    kit.client.delete(mail.minutes)
    assert sum(queue_history("mail").done) == 2


def test_damaged_entries_count_as_nothing(kit, mail):
    hour = now(kit)
    kit.client.hset(mail.hours, mapping={hour - 3: "x", hour - 4: "1 2 3", hour - 5: f"{10**30} 1 1 1 1"})
    history = queue_history("mail", hours=24)
    assert sum(history.done) == 2**53


def test_shards_are_added_up(kit):
    pytest.importorskip("redis_kit.queues.features.shards.feature")
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 2}}})
    for name in spread().names("mail"):
        counted(kit, QueueKeys.of(Queue(name).key("")), now(kit) - 2, done=1, begun=1, late=1000, latest=1000)
    history = queue_history("mail", hours=24)
    assert (sum(history.done), sum(history.begun), max(history.lateness), max(history.latest)) == (4, 4, 1, 1)


@pytest.mark.parametrize("hours", [0, 2161, 1.5, "1", None, True])
def test_wrong_number_of_hours_is_refused(kit, hours):
    with pytest.raises(InvalidValue):
        queue_history("mail", hours=hours)


def test_history_takes_one_round_trip(kit, commands):
    queue_history("mail", hours=2160)
    with commands(kit) as sent:
        queue_history("mail", hours=2160)
    assert len(sent) == 1
