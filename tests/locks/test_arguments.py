"""What callers may pass; none of it reaches a server, for the default connection of the tests leads nowhere."""

import asyncio
import math
from datetime import timedelta
from decimal import Decimal

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.locks import FairLock, Lock, MultiLock, ReadWriteLock, Semaphore, locked

NOT_SECONDS = ["5", True, None.__class__, math.nan, math.inf, -math.inf, Decimal(5), 1e300, 2**63, 10**400, [], b"1"]


@pytest.mark.parametrize("value", [*NOT_SECONDS, 0, -1, 0.0004, 0.0999, 86_400.1, timedelta(0), timedelta(days=2)])
def test_timeout_out_of_range_is_refused(value):
    with pytest.raises(InvalidValue, match=r"timeout must be a number of seconds from 0\.1 to 86,400, not"):
        Lock("a", timeout=value)


@pytest.mark.parametrize("value", [*NOT_SECONDS, -1, -0.001, timedelta(seconds=-1)])
def test_blocking_timeout_out_of_range_is_refused(value):
    with pytest.raises(InvalidValue, match="blocking_timeout must be a number of seconds from 0 to 31,536,000"):
        Lock("a", blocking_timeout=value)
    with pytest.raises(InvalidValue, match="blocking_timeout"):
        Lock("a").acquire(blocking_timeout=value)


@pytest.mark.parametrize("value", [None, 0, "yes"])
def test_blocking_is_true_or_false(value):
    with pytest.raises(InvalidValue, match="blocking must be True or False"):
        Lock("a", blocking=value)


def test_refusal_shows_the_value_cut_short():
    with pytest.raises(InvalidValue) as caught:
        Lock("a", timeout="9" * 1000)
    assert "999..." in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", 1_000_001, 2**31, None])
def test_limit_out_of_range_is_refused(value):
    with pytest.raises(InvalidValue, match="limit must be a whole number from 1 to 1,000,000"):
        Semaphore("a", value)


@pytest.mark.parametrize("value", [None, 0, "yes"])
def test_fair_is_true_or_false(value):
    with pytest.raises(InvalidValue, match="fair must be True or False"):
        Semaphore("a", 1, fair=value)


@pytest.mark.parametrize("name", ["", None, b"a", 1, ("a",), True, "é" * 257, "\ud800"])
def test_wrong_name_is_refused(name):
    for make in (Lock, FairLock, ReadWriteLock, MultiLock, lambda name: Semaphore(name, 1)):
        with pytest.raises(InvalidName):
            make(name)


def test_timedelta_counts_as_seconds():
    assert Lock("a", timeout=timedelta(minutes=2)).lease_timeout == 120
    assert Lock("a", timeout=1).lease_timeout == 1


def test_lease_is_as_long_as_the_setting_says(settings):
    lock = Lock("a")
    assert lock.lease_timeout == 30
    settings.REDIS_KIT = {"LOCKS": {"TIMEOUT": 7.5}}
    assert lock.lease_timeout == 7.5


@pytest.mark.parametrize("make", [Lock, FairLock, MultiLock, lambda name, **options: Semaphore(name, 1, **options)])
def test_no_argument_for_the_wait_means_what_was_told_at_creation(make):
    assert make("a").wait_seconds(None, None) == math.inf
    assert make("a", blocking_timeout=5).wait_seconds(None, None) == 5
    assert make("a", blocking_timeout=5).wait_seconds(True, 7) == 7
    assert make("a", blocking_timeout=5).wait_seconds(False, None) == 0
    assert make("a", blocking=False).wait_seconds(None, 7) == 0
    for kind in (Lock, MultiLock):
        assert "None is the value stated at creation, as in redis-py" in " ".join(kind.acquire.__doc__.split())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Lock("a", ttl=5), "Lock() got an unexpected keyword argument 'ttl'. Write timeout="),
        (lambda: Lock("a", expire=5), "'expire'. Write timeout="),
        (
            lambda: FairLock("a", auto_renewal=True),
            "FairLock() got an unexpected keyword argument 'auto_renewal'. Write renew=",
        ),
        (lambda: Semaphore("a", 3, lease=5), "Semaphore() got an unexpected keyword argument 'lease'. Write timeout="),
        (lambda: ReadWriteLock("a", timout=5), "'timout'. Did you mean 'timeout'?"),
        (lambda: Lock("a", thread_local=True), "'thread_local'. Leave it out: waiters are woken"),
        (
            lambda: Lock("a").acquire(timeout=3),
            "acquire() got an unexpected keyword argument 'timeout'. Write blocking_timeout=",
        ),
        (
            lambda: asyncio.run(Lock("a").aacquire(timeout=3)),
            "acquire() got an unexpected keyword argument 'timeout'.",
        ),
        (lambda: locked("a", ttl=5), "locked() got an unexpected keyword argument 'ttl'. Write timeout="),
    ],
)
def test_argument_of_other_libraries_names_ours(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert text in str(error.value)
