"""Arguments that enqueue() and put() refuse before anything is sent, and the number of jobs in one call."""

import json
import os
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import InvalidArguments, InvalidTask, NotSerializable, PayloadTooLarge, Queue, task
from redis_kit.queues.engine.payload import dumps, loads
from tests.app.models import User
from tests.queues.support.tasks import remember, remember_async

DEEP: list = []
for _ in range(100):
    DEEP = [DEEP]
ENDLESS: dict = {}
ENDLESS["x"] = [ENDLESS]


@pytest.fixture
def queue(kit):
    return Queue("default")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": {1, 2}}, r"\['x'\] is \{1, 2\}"),
        (User(pk=5), "Pass its primary key"),
        (os.system, "JSON can't hold"),
        (object, "JSON can't hold"),
        (bytearray(b"x"), "JSON can't hold"),
        (float("nan"), "is nan"),
        ([float("inf")], r"\[0\] is inf"),
        ({1: "a", "1": "b"}, "has the key 1"),
        ({None: 1}, "has the key None"),
        ({("a",): 1}, "only text as keys"),
        (2**63, "64 bits"),
        (10**5000, "64 bits"),
        (DEEP, "100 deep"),
        (ENDLESS, "holds itself"),
        ("\ud800", "not valid Unicode"),
        ({"\udfff": 1}, "not valid Unicode"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_can_not_hold_is_refused_with_its_place(kit, twin, value, message):
    for add, args, kwargs, place in (
        (remember.enqueue, (value,), {}, r"args\[0\]|args"),
        (remember.enqueue, (1,), {"twice": value}, r"kwargs\['twice'\]|kwargs"),
        (remember_async.enqueue, (value,), {}, r"args\[0\]|args"),
        (Queue("default").put, (value,), {}, "payload"),
    ):
        with pytest.raises(NotSerializable, match=f"({place}).*{message}"):
            twin(add, *args, **kwargs)
    assert kit.keys() == []


def test_wrong_arguments_and_large_ones_are_refused(kit, twin):
    for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"thrice": 1}), ((1,), {"value": 1})):
        with pytest.raises(InvalidArguments, match="remember"):
            twin(remember.enqueue, *args, **kwargs)
    for add in (remember.enqueue, Queue("default").put):
        with pytest.raises(PayloadTooLarge, match="262,144"):
            twin(add, "x" * 2**20)
    assert kit.keys() == []


def test_whole_numbers_of_64_bits_arrive_with_all_their_digits(queue, twin):
    values = [2**53 + 1, 2**63 - 1, -(2**63), 0.1, Decimal("0.1"), [], {}]
    twin(queue.put, values)
    assert queue.claim()[0].payload == values


def test_time_without_a_zone_is_local_in_a_project_without_zones(queue, twin, settings, kit):
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Shanghai"
    when = datetime.now() + timedelta(hours=1)
    twin(remember.using(run_after=when).enqueue, 1)
    ((_, due),) = kit.client.zrange(queue.key("scheduled"), 0, -1, withscores=True)
    assert due / 1000 == pytest.approx(timezone.make_aware(when).timestamp(), abs=0.002)


@pytest.mark.parametrize("delay", [-0.001, float("nan"), float("inf"), 10 * 366 * 86_400, timedelta.max, "5", True])
def test_delays_out_of_range_are_refused(kit, twin, delay):
    for method, given in ((Queue("default").put, 1), (Queue("default").put_many, [1])):
        with pytest.raises(InvalidValue, match="delay must be"):
            twin(method, given, delay=delay)
    assert kit.keys() == []


def test_function_inside_another_one_can_not_be_a_task():
    def inner():
        """No worker finds it."""

    async def ainner():
        """Nor this one."""

    for function in (inner, ainner, os.system):
        with pytest.raises(InvalidTask, match="top of a module"):
            task(function)


def test_a_generator_is_taken_as_it_is_sent(queue, twin, kit):
    behind = []

    def payloads():
        for number in range(2001):
            if number % 100 == 0:
                behind.append(number - kit.client.zcard(queue.key("ready")))
            yield number

    assert len(set(twin(queue.put_many, payloads()))) == 2001
    assert max(behind) <= 500


def test_text_of_callers_is_never_part_of_the_protocol(queue, twin, kit):
    kit.client.set("witness", 1)
    text = "\r\nFLUSHALL\r\n*1\r\n$8\r\nFLUSHALL\r\n\x00'\"\\"
    twin(queue.put, {text: text})
    (job,) = queue.claim()
    assert job.payload == {text: text}
    assert json.loads(job.body) == loads(dumps({text: text}))
    assert kit.client.get("witness") == "1"
    kit.client.delete("witness")
