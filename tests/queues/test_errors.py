"""Errors in another process."""

import copy
import pickle
from datetime import timedelta

import pytest

from redis_kit.queues import Retry, Snooze


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
@pytest.mark.parametrize("error", [Snooze(timedelta(hours=1), "not yet"), Retry("not yet", delay=3)])
def test_error_with_a_delay_can_be_copied(error, copied):
    same = copied(error)
    assert (type(same), same.delay, str(same)) == (type(error), error.delay, "not yet")
