"""Effects in the database that happen once for a key: in a row, at the same moment, and after a rollback."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.queues import NotSerializable, PayloadTooLarge, Queue, once, task
from redis_kit.queues.features.once import once as module
from redis_kit.queues.models import OnceKey
from redis_kit.testing.jobs import drain
from tests.app.models import Place

pytestmark = pytest.mark.django_db(transaction=True)


def build(city, *, fails=False):
    """Make a row once; return whether it was the first time."""
    with once(f"build:{city}") as first:
        if first:
            Place.objects.create(city=city)
            first.result = {"city": city, "cost": Decimal("1.50")}
        if fails:
            raise ValueError("failed")
    return bool(first), first.result


def test_block_runs_once_and_its_result_is_read_later():
    assert build("a") == (True, {"city": "a", "cost": Decimal("1.50")})
    assert build("a") == (False, {"city": "a", "cost": Decimal("1.50")})
    assert build("b")[0]
    assert Place.objects.count() == 2


def test_rollback_frees_the_key():
    for _ in range(2):
        with pytest.raises(ValueError, match="failed"):
            build("a", fails=True)
    assert build("a")[0]
    assert Place.objects.count() == 1


def test_transaction_around_it_decides():
    with suppress(ValueError), transaction.atomic():
        assert build("a")[0]
        assert not build("a")[0]
        raise ValueError
    assert OnceKey.objects.count() == 0
    with transaction.atomic():
        assert build("a")[0]
    assert not build("a")[0]


def test_error_in_a_repeated_block_leaves_the_key():
    build("a")
    with pytest.raises(ValueError, match="failed"):
        build("a", fails=True)
    assert not build("a")[0]


@pytest.mark.parametrize("stored", [None, "", 0, [], {"a": [1, "ü\x00\u2028"]}, False])
def test_any_json_value_can_be_the_result(stored):
    for _ in range(2):
        with once("a") as first:
            if first:
                first.result = stored
        assert first.result == stored


def keep(result):
    with once("a") as first:
        Place.objects.create(city="a")
        first.result = result


@pytest.mark.parametrize(("wrong", "error"), [(object(), NotSerializable), ("x" * 300_000, PayloadTooLarge)])
def test_result_that_can_not_be_stored_rolls_back(wrong, error):
    with pytest.raises(error):
        keep(wrong)
    assert (Place.objects.count(), OnceKey.objects.count()) == (0, 0)


calls: list[int] = []


@once(lambda number, **_: f"square:{number}")
def square(number, *, note=""):
    """Square a number, once for each."""
    calls.append(number)
    return number * number


def test_decorated_function_returns_its_first_result_again():
    calls.clear()
    assert [square(3), square(3, note="again"), square(4)] == [9, 9, 16]
    assert calls == [3, 4]
    assert square.__name__ == "square"


def charge(order):
    """The function of a task that is delivered twice."""
    with once(f"charge:{order}") as first:
        if first:
            Place.objects.create(city=order)
    calls.append(bool(first))
    if len(calls) == 1:
        raise ValueError  # after the commit, so that the job is delivered again


def test_job_that_is_delivered_again_has_its_effect_once(kit):
    calls.clear()
    task(max_attempts=3, backoff=0)(charge).enqueue("o1")
    drain()
    assert calls == [True, False]
    assert Place.objects.count() == 1
    assert Queue("default").counts() == (0, 0, 0, 0)


def test_key_with_a_time_is_forgotten_after_it(monkeypatch):
    monkeypatch.setattr(module, "ONE_IN", 1)
    for keep in (60, timedelta(minutes=1)):
        with once(f"a{keep}", keep=keep) as first:
            assert first
        with once(f"a{keep}", keep=keep) as first:
            assert not first
    OnceKey.objects.create(digest="other", key="other", expires=now() - timedelta(days=1))
    OnceKey.objects.update(expires=now() - timedelta(seconds=1))
    build("stays")
    with once("a60", keep=60) as first:
        assert first
    assert {row.key for row in OnceKey.objects.all()} == {"a60", "build:stays"}  # the others were deleted


def test_statements_are_two_and_three_with_a_result(django_assert_num_queries):
    with django_assert_num_queries(3 + 2), once("a"):  # BEGIN and COMMIT count, too
        pass
    with django_assert_num_queries(4 + 2), once("b") as first:
        first.result = 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\0b", "\ud800", None, 7])
def test_wrong_key_is_refused(key):
    with pytest.raises(InvalidValue, match="1 to 255 characters"):
        once(key)
    with pytest.raises(InvalidValue, match="1 to 255 characters"):
        once(lambda: key)(lambda: None)()


def test_keys_that_a_collation_may_take_for_one_are_two():
    for key in ("a", "A", "a ", "á"):
        with once(key) as first:
            assert first


def test_misuse_is_named(settings):
    with pytest.raises(InvalidValue, match="@once"), once(lambda: "a"):
        pass
    with pytest.raises(InvalidValue, match="keep must be"):
        once("a", keep=0)
    with pytest.raises(InvalidValue, match="sync_to_async"):

        @once("a")
        async def work():
            await asyncio.sleep(0)

    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "redis_kit"]
    with pytest.raises(ConfigurationError, match="INSTALLED_APPS"), once("a"):
        pass


def test_row_that_the_transaction_does_not_see_is_an_error(monkeypatch):
    """As on PostgreSQL, if the snapshot of a repeatable read is older than the row."""
    with once("a"):
        pass
    monkeypatch.setattr(module, "_keys", lambda using: OnceKey.objects.none())
    with pytest.raises(IntegrityError), once("a"):
        pass
    assert not connection.in_atomic_block
