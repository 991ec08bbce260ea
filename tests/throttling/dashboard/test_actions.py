"""Buttons of the page: which identity they concern, and the text that may be typed."""

from itertools import product

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import hashed
from redis_kit.throttling import Throttle
from redis_kit.throttling.dashboard.actions import Target, duration

WHO = hashed("joe")


@pytest.mark.parametrize("name", ["login", "a b", "a\nb", " ", "*", "部门", "x" * 512])
def test_value_of_a_button_is_read_back(name):
    for identity_hash, using in product([WHO, ""], ["default", "other", "a b/@!%", "部门"]):
        for rule in ("", "ban-1790000000.5"):
            target = Target(name, identity_hash, using, rule)
            assert Target.parse(target.value) == target


def test_value_without_a_connection_means_the_default_one():
    assert Target.parse(f"{WHO} login") == Target("login", WHO, "default")
    assert Target("login", WHO).value == f"{WHO} login"


@pytest.mark.parametrize("value", ["", "login", " ", f"{WHO} ", f"{WHO[1:]} login", f"{WHO}x login", "* login"])
def test_other_values_are_refused(value):
    with pytest.raises(InvalidValue, match="the button names no throttle"):
        Target.parse(value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("15m", 900), ("2h", 7200), ("2 h", 7200), ("7D", 604_800), ("3 weeks", 1_814_400), ("1.5h", 5400)],
)
def test_time_is_read(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1", "h", "2x", "1h;1/m", "1h burst 3", "٣", "nan", "1e9", "9" * 99])
def test_other_times_are_refused(text):
    with pytest.raises(InvalidValue, match="Enter a duration"):
        duration(text)


def test_rules_are_set_and_lifted_in_words_without_an_identity(kit):
    login, joe = Throttle("login", "1/h"), Target("login", WHO)
    assert joe.ban("15m") == f"Banned for 15m: login, {WHO}."
    assert login.rules.of("joe").kind == "ban"
    assert joe.exempt("2h") == f"Exempt for 2h: login, {WHO}."
    assert login.rules.of("joe").kind == "exempt"
    assert joe.override("5/m burst 2 FOR 1h") == f"Rates are 5/m burst 2 for 1h: login, {WHO}."
    assert login.rules.of("joe").rates == "5/m burst 2"
    assert Target("login").override("9/m for 90") == "Rates are 9/m for 90: login."
    assert login.rules.of().rates == "9/m"
    assert joe.lift() == f"The rule was lifted: login, {WHO}."
    assert login.rules.of("joe") is None
    with pytest.raises(InvalidValue, match="Nothing was lifted"):
        joe.lift()
    assert login.rules.of().rates == "9/m"
    assert Target("login").lift() == "The rule was lifted: login."


@pytest.mark.parametrize(
    "text", ["", "5/m", "for 2h", "5/m for", "5/m 2h", "0/s for 2h", "nonsense for 2h", "5/m for ever"]
)
def test_other_rates_are_refused(kit, text):
    login = Throttle("login", "1/h")
    with pytest.raises(InvalidValue):
        Target("login", WHO).override(text)
    assert login.rules.list() == []


def test_identity_is_forgotten_by_its_hash(kit):
    login, joe = Throttle("login", "1/h"), Target("login", WHO)
    with pytest.raises(InvalidValue, match="Nothing was reset"):
        joe.reset()
    login.hit("joe")
    assert not login.hit("joe")
    assert joe.reset() == f"All calls were reset: login, {WHO}."
    assert login.hit("joe")


def test_ban_is_forgotten_by_the_hash_and_taken_from_the_list(kit):
    from redis_kit.throttling import Ban

    kit.options(THROTTLING={"REMEMBER": 0})
    login = Throttle("login", "1/h", ban=Ban(after=1, within=60, seconds=600))
    for _ in range(3):
        login.hit("joe")
    assert login.peek("joe").reason == "banned"
    assert [rule.kind for rule in login.rules.list()] == ["ban"]
    Target("login", WHO).reset()
    assert login.peek("joe")
    assert login.rules.list() == []
    assert not kit.client.exists(login.keys("joe").rules)


def test_throttle_that_this_process_has_not_built_is_an_error(kit):
    with pytest.raises(InvalidValue, match="has not built the throttle none"):
        Target("none", WHO).ban("15m")


def test_throttle_that_never_asks_takes_no_rule(kit):
    Throttle("free", None)
    with pytest.raises(InvalidValue, match="same answer"):
        Target("free", WHO).ban("15m")
