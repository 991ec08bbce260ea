"""The redaction of a job's arguments."""

import pytest

from redis_kit.core.logs.masking import without_secrets
from redis_kit.queues.dashboard import job_page
from redis_kit.queues.engine import message, payload
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.task import task


@task
def log_in(user, password, *more, api_key=None, note=""):
    """A task with a secret in the middle."""


@task
def log_out(user):
    """A task that had another argument once."""


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {log_in.name: log_in, log_out.name: log_out})


def shown(*args, name=log_in.name, **kwargs):
    return job_page.redacted_arguments(message.dumps(name, args, kwargs))


def test_arguments_are_hidden_by_their_names(known):
    assert shown("ann", "hunter2") == "'ann', '***'"
    assert shown("ann", password="hunter2", api_key="k", note="hi") == "'ann', password='***', api_key='***', note='hi'"
    assert shown(7, "hunter2", "x", "y") == "7, '***', 'x', 'y'"


def test_positional_arguments_of_a_task_that_is_not_known_are_hidden():
    assert shown(7, "hunter2", None, {"a": 1}, name="gone.tasks.x", n="hi") == "7, '***', None, '***', n='hi'"


def test_arguments_that_do_not_fit_any_more_are_hidden(known):
    assert shown("ann", name=log_out.name) == "'ann'"
    assert shown("ann", "hunter2", name=log_out.name) == "'***', '***'"
    assert shown(name=log_out.name) == ""


@pytest.mark.parametrize(
    "name",
    [
        *("password", "PASSWD", "passphrase", "pwd", "token", "access_token", "accessToken", "client-secret", "key"),
        *("apiKey", "credentials", "Authorization", "cookie", "sessionid", "signature"),
    ],
)
def test_secrets_are_hidden_at_any_depth(name):
    found = job_page.redacted_arguments(payload.dumps({"rows": [{name: {"x": "hunter2"}, "id": 7}]}))
    assert "hunter2" not in found
    assert "'id': 7" in found


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("https://x.example/?token=hunter2&page=2", "https://x.example/?token=***&page=2"),
        ("redis://:hunter2@host:6379/0", "redis://:***@host:6379/0"),
        ("amqp://guest:hunter2@host", "amqp://guest:***@host"),
        ("KeyError: {'password': 'hunter2', 'a': 1}", "KeyError: {'password': '***', 'a': 1}"),
        ('{"api_key": "hunter2"}', '{"api_key": "***"}'),
        ("Authorization: Bearer hunter2", "Authorization: ***"),
        ("ValueError: 5 is not 6", "ValueError: 5 is not 6"),
        ("url: https://x.example/?token=hunter2", "url: https://x.example/?token=***"),
        ("a.token=hunter2", "a.token=***"),
        ("key" * 20_000, "key" * 20_000),
        ("", ""),
    ],
)
def test_secrets_in_texts_are_hidden(text, seen):
    assert without_secrets(text) == seen


def test_large_payloads_are_cut(known):
    assert len(shown("x" * 10_000, note="y" * 10_000)) < 500
    assert len(job_page.redacted_arguments(payload.dumps(["x" * 100] * 2000))) <= job_page.MOST_CHARACTERS


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"$what":1}'])
def test_body_that_can_not_be_read_is_named(body):
    assert job_page.redacted_arguments(body) == "It can't be read."


def test_types_beyond_json_are_shown():
    assert job_page.redacted_arguments(payload.dumps({"data": b"hunter2"})) == "{'data': '***'}"
