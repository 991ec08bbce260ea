"""Advice about Sentinels."""

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.operations.server.advice import sentinel_advice
from tests.fixtures.kit import Kit
from tests.fixtures.process import client


@pytest.fixture
def watched(sentinel, settings):
    """The kit on a service of Sentinels."""
    kit = Kit(sentinel, settings)
    yield kit
    kit.close()


def entry(watched, **changes):
    watched.connect({**watched.server.connection, **changes})


def test_complete_group_needs_no_advice(watched):
    assert sentinel_advice("default") == []


def test_sentinel_that_does_not_answer_is_named(watched):
    entry(watched, SENTINELS=[*watched.server.connection["SENTINELS"], ["127.0.0.1", 1]])
    (only,) = sentinel_advice("default")
    assert only.level == "warning"
    assert "127.0.0.1:1" in only.message


def test_sentinel_that_refuses_the_password_is_named_with_its_reason(watched):
    entry(watched, SENTINEL_KWARGS={"username": "nobody", "password": "wrong"})
    with pytest.raises(RedisUnavailable, match=r"answers: 127\.0\.0\.1:\d+ \(AuthenticationError: invalid username"):
        sentinel_advice("default")


def test_sentinel_that_refuses_the_command_is_named_with_the_rule(watched):
    host, port = watched.server.connection["SENTINELS"][0]
    with client(f"redis://{host}:{port}") as one:
        one.execute_command("ACL", "SETUSER", "default", "-sentinel|masters")
        (refusing,) = sentinel_advice("default")
        one.execute_command("ACL", "SETUSER", "default", "+sentinel|masters")
    assert f"refuse the command: {host}:{port} (" in refusing.message
    assert refusing.remedy == "ACL SETUSER default +ping +sentinel|masters"


def test_unknown_service_is_an_error(watched):
    entry(watched, SERVICE="orders")
    assert [each.level for each in sentinel_advice("default")] == ["error"]


def test_no_sentinel_that_answers_is_an_outage(watched):
    entry(watched, SENTINELS=[["127.0.0.1", 1]])
    with pytest.raises(RedisUnavailable, match="None of the Sentinels"):
        sentinel_advice("default")


def test_plain_server_has_none(kit):
    assert sentinel_advice("default") == []
