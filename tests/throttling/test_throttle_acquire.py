"""Waiting until a call is allowed."""

import asyncio
import threading
from time import monotonic

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.steps import Sleep
from redis_kit.throttling import Ban, Rate, Throttle, throttled
from redis_kit.throttling.statistics import recent
from redis_kit.throttling.strategies import STRATEGIES


@pytest.fixture(params=["acquire", "aacquire"])
def wait(request):
    def call(limit, *args, **kwargs):
        found = getattr(limit, request.param)(*args, **kwargs)
        return found if request.param == "acquire" else asyncio.run(found)

    return call


@pytest.fixture
def slept(monkeypatch):
    """How long was slept each time; it is slept for real."""
    seconds = []
    run, arun = Sleep.run, Sleep.arun

    def note(self, client):
        seconds.append(self.seconds)
        return run(self, client)

    def anote(self, client):
        seconds.append(self.seconds)
        return arun(self, client)

    monkeypatch.setattr(Sleep, "run", note)
    monkeypatch.setattr(Sleep, "arun", anote)
    return seconds


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_waiter_sleeps_for_retry_after_and_then_passes(kit, wait, slept, strategy):
    limit = Throttle("x", [(1, 0.2)], strategy=strategy)
    while not slept:  # a window may turn between two calls
        assert wait(limit, "joe", timeout=5)
    assert 0 < sum(slept) <= 0.45  # a window of the sliding counter weighs for two
    assert len(slept) <= 2


def test_call_with_room_does_not_sleep(kit, wait, slept):
    assert wait(Throttle("x", "1/h"), "joe", timeout=0)
    assert slept == []


@pytest.mark.parametrize("timeout", [0, 0.05, 1799])
def test_waiter_gives_up_at_once_where_the_time_is_too_short(kit, wait, slept, timeout):
    limit = Throttle("x", "2/h")
    limit.hit("joe", cost=2)
    decision = wait(limit, "joe", timeout=timeout)
    assert not decision
    assert decision.retry_after > timeout
    assert slept == []


def test_waiter_gives_up_at_once_where_nothing_ever_passes(kit, wait, slept):
    assert not wait(Throttle("x", "0/s"), "joe")
    assert slept == []


def test_cost_is_waited_for(kit, wait, slept):
    limit = Throttle("x", [(4, 0.2)])
    limit.hit("joe", cost=4)
    assert wait(limit, "joe", cost=2, timeout=5).remaining <= 1
    assert 0.05 < sum(slept) <= 0.11


def test_waiter_is_not_refused_until_it_gives_up(kit, wait):
    seen = []
    limit = Throttle("x", [(2, 0.2)], ban=Ban(1, 60, 60))
    throttled.connect(lambda **sent: seen.append(sent["decision"]), weak=False, dispatch_uid="waiter")
    try:
        limit.hit("joe", cost=2)
        assert all(wait(limit, "joe", cost=2, timeout=5) for _ in range(2))
        assert (limit.offenders(), seen) == ([], [])
        assert not wait(limit, "joe", cost=2, timeout=0.01)
    finally:
        throttled.disconnect(dispatch_uid="waiter")
    assert [offender.refusals for offender in limit.offenders()] == [1]
    assert len(seen) == 1
    assert [sum(place) for place in zip(*(minute[1:] for minute in recent([limit])[limit]), strict=True)] == [3, 1]
    assert limit.peek("joe").reason == ""


@pytest.mark.parametrize("timeout", ["5", -1, float("nan"), True])
def test_timeout_that_is_no_time_is_an_error(kit, wait, timeout):
    with pytest.raises(InvalidValue, match="timeout"):
        wait(Throttle("x", "5/h"), "joe", timeout=timeout)


def test_waiters_do_not_wake_at_the_same_moment(kit, monkeypatch):
    limit, pauses = Throttle("x", [(1, 20)], clock=lambda: 1_760_000_000.0), []
    limit.hit("joe")

    async def interrupt(self, client):
        pauses.append(self.seconds)
        raise asyncio.CancelledError

    async def main():
        await asyncio.gather(*(limit.aacquire("joe") for _ in range(3)), return_exceptions=True)

    monkeypatch.setattr(Sleep, "arun", interrupt)
    asyncio.run(main())
    assert len(set(pauses)) == 3
    assert all(20 <= seconds < 22.01 for seconds in pauses)


def test_many_waiters_all_pass_one_after_the_other(kit):
    limit, passed = Throttle("x", Rate(10, 0.1, 1)), []

    def waiter():
        assert limit.acquire("joe", timeout=10)
        passed.append(monotonic())

    threads = [threading.Thread(target=waiter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    assert len(passed) == 8
    assert max(passed) - min(passed) >= 0.06


def test_many_tasks_wait_without_holding_each_other_up(kit):
    limit = Throttle("x", Rate(10, 0.1, 1))

    async def main():
        other = asyncio.create_task(asyncio.sleep(0.001))
        answers = await asyncio.gather(*(limit.aacquire("joe", timeout=10) for _ in range(8)))
        assert other.done()
        return answers

    assert all(asyncio.run(main()))


def test_wait_goes_on_through_an_outage_that_ends_in_time(own_kit, wait):
    limit = Throttle("x", "5/h", on_failure="closed")
    own_kit.server.stop()
    again = threading.Timer(0.3, own_kit.server.start)
    again.start()
    decision = wait(limit, "joe", timeout=10)
    again.join()
    assert decision
    assert decision.reason == ""
