"""Recent lists: their order, their size and their owners."""

import pytest

from redis_kit.autocomplete import RecentList
from redis_kit.core.errors import InvalidName, InvalidValue, RedisUnavailable


def test_latest_values_come_first_and_once(any_kit, twin):
    people = RecentList("people", 7, size=3)
    assert twin(people.all) == []
    for name in ("Anna Schmidt", "Bo", "Zoë", "Anna Schmidt", "Hanna"):
        twin(people.add, name)
    assert twin(people.all) == ["Hanna", "Anna Schmidt", "Zoë"]
    assert twin(people.match, "SCH an") == ["Anna Schmidt"]
    assert twin(people.match, "zo") == ["Zoë"]
    assert twin(people.match, "") == ["Hanna", "Anna Schmidt", "Zoë"]
    assert twin(people.remove, "Hanna") is True
    assert twin(people.remove, "Hanna") is False
    assert RecentList("people", 8).all() == []
    assert twin(people.clear) is True
    assert twin(people.clear) is False


def test_owners_share_no_key(kit):
    RecentList("a:b", "c").add("x")
    assert RecentList("a", "b:c").all() == []
    assert RecentList("a", "b").all() == []


def test_texts_come_back_as_they_were(kit):
    recent = RecentList("texts", "owner")
    for text in ("a\0b", "\ud800", "{x}*", "\r\n"):
        recent.add(text)
        assert recent.all()[0] == text


def test_wrong_calls_are_refused(kit):
    for wrong in (0, 1001, "3"):
        with pytest.raises(InvalidValue, match="size must be a whole number from 1 to 1,000"):
            RecentList("people", 1, size=wrong)
    with pytest.raises(InvalidName):
        RecentList("people", "")
    for stranger in (None, True):  # all who are not logged in would share a list
        with pytest.raises(InvalidValue, match="owner of a list must be"):
            RecentList("people", stranger)
    with pytest.raises(TypeError, match="size"):
        RecentList("people", 1, sise=3)
    for wrong in ("", None, "x" * 1001):
        with pytest.raises(InvalidValue, match="1 to 1,000 characters"):
            RecentList("people", 1).add(wrong)
    with pytest.raises(InvalidValue, match="must be a str, not None"):
        RecentList("people", 1).match(None)


def test_nothing_is_found_while_redis_is_unavailable(own_kit):
    recent = RecentList("down", 1)
    recent.add("Anna")
    own_kit.server.stop()
    assert recent.all() == recent.match("a") == []
    with pytest.raises(RedisUnavailable):
        recent.add("Bo")
