"""The lists of records and of messages."""

import logging
from datetime import timedelta
from time import time

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.logs import Logs
from redis_kit.logs.buffer import buffer
from redis_kit.logs.handler import RedisHandler
from redis_kit.logs.inspection import read_levels
from redis_kit.logs.keys import HOUR

pytestmark = pytest.mark.usefixtures("no_thread")


def logger(name):
    made = logging.Logger(name, logging.DEBUG)
    made.addHandler(RedisHandler())
    return made


def emit(log, created, text="Of %s", *args):
    record = log.makeRecord(log.name, logging.ERROR, "/shop/views.py", 1, text, args or ("x",), None, "pay")
    record.created = created
    log.handle(record)


def test_last_records_of_each_level_and_group_are_stored(kit, twin):
    kit.options(LOGS={"RECENT": 20})
    for number in range(5):
        logger("mail").error("%s %d", "mail", number)
    for number in range(30):
        logger("shop.orders").error("%s %d", "order", number)
        logger("shop.carts").info("%s %d", "cart", number)
    for _ in range(2):
        buffer.flush()
        assert [each.message for each in twin(Logs().recent, "ERROR", limit=20)] == [
            f"order {n}" for n in range(29, 9, -1)
        ]
        errors = [each.message for each in twin(Logs().recent, "error", limit=100)]
        assert errors == [*(f"order {n}" for n in range(29, 9, -1)), "mail 4", "mail 3"]
        assert len(twin(Logs().recent, limit=1000)) - len(twin(Logs().recent, "DEBUG")) == 2 * 20 + 2
        assert [each.message for each in twin(Logs().recent, "INFO", text="CART 2", limit=2)] == ["cart 29", "cart 28"]
        assert [each.message for each in twin(Logs().recent, text="MAIL 4", limit=1)] == ["mail 4"]
        logger("mail").debug("Another batch")


@pytest.mark.parametrize("limit", [0, -1, 10_001, "x", True])
def test_wrong_level_limit_and_fingerprint_are_refused(kit, twin, limit):
    with pytest.raises(InvalidValue, match="Did you mean 'ERROR'"):
        twin(Logs().recent, "EROR")
    for method in (Logs().recent, Logs().common):
        with pytest.raises(InvalidValue, match="limit must be a whole number from 1 to 10,000"):
            twin(method, limit=limit)
    for wrong in ("nope", None, 5):
        with pytest.raises(InvalidValue, match=f"No message of the last 48 hours has the fingerprint {wrong!r}"):
            twin(Logs().fingerprint, wrong)


def test_record_that_cannot_be_read_is_left_out(kit, log):
    log.error("Order %d", 1)
    buffer.flush()
    for text in (b"x", b"1" * 40 + b"\x1f" * 11, b"\xff", b"1\x1fnew\x1fform"):
        kit.client.lpush("rk:{logs}:recent:ERROR", text)
    assert [each.message for each in Logs().recent()] == ["Order 1"]
    assert Logs().recent(text="new") == []


def test_severest_of_equal_messages_comes_first(kit, log):
    for method in (log.debug, log.critical, log.info, log.error, log.warning):
        method("Equal")
    buffer.flush()
    assert [each.sample.level for each in Logs().common()] == ["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"]
    assert Logs().common()[0].sample.title == "Equal"


def test_keys_are_those_of_logs(kit, log):
    log.error("Order %d", 1)
    buffer.flush()
    assert Logs().key("groups") in kit.keys()


def test_groups_beyond_the_limit_have_no_list(kit, monkeypatch):
    monkeypatch.setattr("redis_kit.logs.buffer.GROUPS", 2)
    for name in ("a", "b", "c.x", "d", "a.b"):
        logger(name).error("Of %s", name)
    buffer.flush()
    assert {each.logger for each in Logs().recent()} == {"a", "b", "c.x", "d", "a.b"}
    assert len([name for name in kit.keys() if ":recent:ERROR:" in name]) == 2


def test_common_messages_are_those_of_the_last_hours(kit, log, twin):
    now = time()
    for kind, count in (("One of %s", 5), ("Two of %s", 3), ("Three of %s", 1)):
        for number in range(count):
            emit(log, now, kind, number)
    for _ in range(10):
        emit(log, now - 3 * HOUR, "Three of %s")
    buffer.flush()
    assert [(each.sample.template, each.records) for each in twin(Logs().common)] == [
        ("One of %s", 5),
        ("Two of %s", 3),
        ("Three of %s", 1),
    ]
    assert [each.records for each in twin(Logs().common, 48)] == [11, 5, 3]
    message = twin(Logs().common)[0]
    assert message.is_new
    assert message.sample.message == "One of 4"
    assert abs(message.first_seen.timestamp() - now) < 60
    same, counts = twin(Logs().fingerprint, message.fingerprint)
    assert (same, counts) == (message, [0] * 47 + [5])
    levels = flow.run(read_levels(4), connections.client())
    assert [hour["ERROR"] for hour in levels] == [10, 0, 0, 9]
    with pytest.raises(InvalidValue):
        twin(Logs().common, 49)


def test_messages_are_counted_by_template_error_and_place(kit, log):
    def pay(text, *args):
        log.error(text, *args)

    def refund(text, *args):
        log.error(text, *args)

    for number in range(3):
        pay("Order %d", number)
        refund("Order %d", number)
        for error in (KeyError, ValueError):
            try:
                raise error(number)
            except error:
                log.exception("Failed")
    buffer.flush()
    found = Logs().common()
    assert [each.records for each in found] == [3] * 4
    assert {each.sample.place for each in found} >= {"logs/test_inspection.py pay", "logs/test_inspection.py refund"}


def test_messages_beyond_the_limit_are_counted_as_other(kit, log):
    kit.options(LOGS={"FINGERPRINTS": 3})
    for number in range(10):
        for _ in range(number + 1):
            emit(log, time(), f"Kind {number} of %s")
        buffer.flush()
    assert Logs().fingerprint("other")[0].sample is None
    found = {each.fingerprint: each.records for each in Logs().common()}
    assert found.pop("other") == sum(range(4, 11))
    assert sorted(found.values()) == [1, 2, 3]
    assert len([name for name in kit.keys() if ":message:" in name]) == 3


@pytest.mark.parametrize("created", [0, -5.0, 4e9, 1e15, float("nan"), float("inf"), None, "2026-01-01", True])
def test_time_that_cannot_be_right_is_the_present_one(kit, log, created):
    log.error("Before")
    emit(log, created)
    log.error("After")
    assert buffer.flush()
    assert [each.records for each in Logs().common()] == [1, 1, 1]
    assert [each.message for each in Logs().recent()] == ["After", "Of x", "Before"]


def test_every_key_expires(kit, log):
    log.error("Order %d", 1)
    buffer.flush()
    names = kit.keys()
    assert len(names) == 8
    assert all(0 < kit.client.ttl(name) <= timedelta(days=7).total_seconds() for name in names)
