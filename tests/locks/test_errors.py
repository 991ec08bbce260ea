"""The errors of locks, whichever way redis-py's errors keep their arguments."""

from copy import copy

import pytest
from redis.exceptions import LockError

from redis_kit.locks import errors

RAISED = (
    errors.LockNotAcquired("It is held.", "a", "web-1"),
    errors.AlreadyHeld("It is held.", "a"),
    errors.NotHeld("It is held.", "a"),
    errors.LockLost("It is held.", "a"),
    errors.StaleFence("It is held.", "a", fence=3),
)


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_text_of_an_error_is_its_message(error):
    assert str(error) == "It is held."
    assert repr(error) == f"{type(error).__name__}('It is held.')"
    assert error.lock_name == "a"
    copied = copy(error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))


@pytest.mark.parametrize("kind", [type(error) for error in RAISED])
def test_text_is_the_message_if_redis_py_stores_none(monkeypatch, kind):
    def store_names(self, message=None, lock_name=None):  # as redis-py 6.4 does
        self.message, self.lock_name = message, lock_name

    monkeypatch.setattr(LockError, "__init__", store_names)
    assert str(kind("It is held.", "a")) == "It is held."
