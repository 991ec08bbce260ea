"""A filter of a model hides no row in any state; the program that says so finds one that does."""

import pytest

from redis_kit.bloom import ModelFilter
from redis_kit.bloom.filter import digest
from redis_kit.core.indexes import model_index
from tests.app.models import Account
from tests.chaos.bloom import guard

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_other_indexes(monkeypatch, own_kit):
    monkeypatch.setattr(model_index, "_indexes", [])
    # A child process has no database in memory.
    monkeypatch.setattr(guard, "_in_other_process", lambda work: work())


def test_no_row_is_hidden(own_kit):
    answers = guard.look_up(own_kit.server, Account, 400)
    assert guard.wrong(answers) == []
    assert len(answers) == 11
    assert answers["after FLUSHALL"] == answers["never built"] == (0, 1.0)


def test_program_finds_a_filter_that_does_not_know_its_state(own_kit, monkeypatch):
    def unguarded(self, seen, value):
        (answer,) = yield from seen.look_up([digest(self.comparable(value))])
        return answer

    monkeypatch.setattr(ModelFilter, "_look_up", unguarded)
    assert "never built" in guard.wrong(guard.look_up(own_kit.server, Account, 400))
