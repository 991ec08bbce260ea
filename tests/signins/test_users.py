import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from threading import Thread

import pytest

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.signins import days
from redis_kit.signins.errors import NoneLeft
from redis_kit.signins.segments import SignInStore
from redis_kit.signins.users import SignInUser
from tests.app.models import User
from tests.fixtures.process import wait_for
from tests.signins.people import numbers, saved

TODAY = datetime.now(UTC).date()
DAY = timedelta(days=1)


def test_one_of_32_sign_ins_at_once_is_new_and_gets_the_milestone(kit, user):
    for ago in range(6, 0, -1):
        user.sign_in(TODAY - DAY * ago)
    with ThreadPoolExecutor(32) as threads:
        results = list(threads.map(lambda _: user.sign_in(), range(32)))
    assert sum(result.new for result in results) == 1
    assert [result.milestones for result in results if result.milestones] == [[7]]
    assert {(result.streak, result.longest, result.total) for result in results} == {(7, 7, 7)}


def test_sign_in_whose_reply_is_lost_returns_the_first_answer(kit, proxy, twin):
    kit.connect(proxy.connection, READ_TIMEOUT=0.3)
    kit.options(SIGNINS={"MILESTONES": [2]})
    user = saved(next(numbers))
    assert twin(user.sign_in, TODAY - DAY).new
    with _first_reply_lost(proxy):
        result = twin(user.sign_in)
    assert (result.new, result.streak, result.total, result.milestones) == (True, 2, 2, [2])
    assert not user.sign_in().new


def test_second_call_with_the_same_token_returns_the_first_answer(kit, proxy, user, twin):
    kit.connect(proxy.connection, READ_TIMEOUT=0.3)
    kit.options(SIGNINS={"MILESTONES": [1]})
    twin(user.sign_in_summary)  # connects
    with proxy.fault("drop_replies"), pytest.raises(RedisUnavailable) as failure:
        twin(user.sign_in, token="the form")
    assert failure.value.indeterminate
    found = [twin(user.sign_in, token=token) for token in ("the form", "the form", "another")]
    assert [(result.new, result.milestones) for result in found] == [(True, [1]), (True, [1]), (False, [])]


@pytest.mark.parametrize("token", ["", "form"])
def test_token_of_another_day_does_not_hide_a_sign_in(user, token):
    user.sign_in(TODAY - DAY, token=token)
    assert user.sign_in(token=token).total == 2


def test_made_up_day_joins_streaks_and_is_marked(user, twin):
    for ago in (4, 3, 1, 0):
        user.sign_in(TODAY - DAY * ago)
    result = twin(user.make_up_sign_in, TODAY - DAY * 2)
    assert (result.new, result.streak, result.total) == (True, 5, 5)
    assert not twin(user.make_up_sign_in, TODAY - DAY * 2).new
    assert user.sign_in_streak() == 5


def test_frozen_day_carries_a_streak_and_does_not_count(user, twin):
    user.sign_in(TODAY - DAY * 2)
    result = twin(user.freeze_sign_ins, TODAY - DAY)
    assert (result.new, result.streak, result.total) == (True, 1, 1)
    assert user.sign_in().streak == 2
    assert user.sign_in_summary().total == 2


def test_sign_in_on_a_frozen_day_returns_the_freeze(kit, user):
    kit.options(SIGNINS={"FREEZES": 1, "WINDOW": 0})
    user.freeze_sign_ins(TODAY)
    user.sign_in()
    month = user.sign_in_calendar(TODAY.year, TODAY.month)
    assert (month.count, month.freezes, month.make_ups) == (1, 0, 0)


def test_budget_of_a_month_is_kept_by_all_callers_together(kit):
    kit.options(SIGNINS={"MAKE_UPS": 2, "WINDOW": 62})
    user = saved(next(numbers))
    first = (TODAY.replace(day=1) - DAY).replace(day=1)

    def make_up(day):
        try:
            return user.make_up_sign_in(day).new
        except NoneLeft as error:
            return "2 in a month" not in str(error)

    days = [first + DAY * number for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        assert sum(threads.map(make_up, days)) == 2
    assert user.sign_in_calendar(first.year, first.month).make_ups == 2


@pytest.mark.parametrize(("name", "ahead"), [("make_up", 0), ("make_up", -8), ("freeze", 8), ("freeze", -8)])
def test_day_outside_the_window_is_refused(user, name, ahead):
    method = user.make_up_sign_in if name == "make_up" else user.freeze_sign_ins
    with pytest.raises(InvalidValue, match="only "):
        method(TODAY + DAY * ahead)


@pytest.mark.parametrize("pk", [2**63 - 1, "8c1f2c9e-0000-4000-8000-00000000beef"])
def test_large_id_allocates_little_anywhere(kit, pk):
    from tests.app.models import Device

    saved(pk, Device if isinstance(pk, str) else None).sign_in()
    sizes = {key: kit.client.memory_usage(key) for key in kit.keys()}
    assert max(sizes.values()) <= 200
    assert len(sizes) == 6


def test_year_of_a_user_takes_at_most_46_bytes(kit, user):
    for number in range(366):
        user.sign_in(datetime(2024, 1, 1).date() + DAY * number)
    (year,) = (key for key in kit.keys() if ":year:" in key)
    (state,) = (key for key in kit.keys() if ":user:" in key)
    assert kit.client.strlen(year) == 46
    assert kit.client.strlen(state) <= 64


def test_covered_days_take_at_most_92_bytes_of_a_year(kit):
    kit.options(SIGNINS={"MAKE_UPS": 31, "FREEZES": 31})
    user, chance, first = saved(next(numbers)), random.Random(3), date(TODAY.year - 1, 1, 1)
    days = sorted(chance.sample(range(365), 24))
    changes = SignInUser(User, user.pk)
    for at in range(365):
        day = first + DAY * at
        if at not in days:
            user.sign_in(day)
    for made_up, frozen in zip(days[::2], days[1::2], strict=True):
        SignInStore().run_flow(changes.cover("make_up", first + DAY * made_up, first + DAY * made_up + DAY))
        SignInStore().run_flow(changes.cover("freeze", first + DAY * frozen, first + DAY * frozen))
    (year,) = (key for key in kit.keys() if ":year:" in key)
    assert kit.client.strlen(year) <= 92
    months = [user.sign_in_calendar(first.year, month) for month in range(1, 13)]
    assert [day.date for month in months for day in month.days if day.made_up] == [first + DAY * at for at in days[::2]]
    assert [day.date for month in months for day in month.days if day.frozen] == [first + DAY * at for at in days[1::2]]
    assert user.sign_in_summary().longest == user.sign_in_count() == 365 - 12


@contextmanager
def _first_reply_lost(proxy):
    """Lose one reply, so that only a call that is repeated gets one."""
    before = proxy.replies
    proxy.set("drop_replies")

    def end():
        wait_for(lambda: proxy.replies > before)
        proxy.set("ok")

    thread = Thread(target=end)
    thread.start()
    yield
    thread.join()


def test_year_of_the_site_is_erased_though_the_system_is_not_yet_in_it(kit, monkeypatch):
    """The site is two years ahead, and not some hours, as the year after that of the system is erased anyway."""
    present = datetime.now(UTC) + 731 * DAY
    monkeypatch.setattr(days, "now", present.astimezone)
    user = saved(next(numbers))
    user.sign_in(present.date())
    changes = SignInUser(type(user), user.pk)
    year = changes.year_key(present.year)
    assert kit.client.exists(year)
    assert SignInStore().run_flow(changes.erase())
    assert not kit.client.exists(year)
