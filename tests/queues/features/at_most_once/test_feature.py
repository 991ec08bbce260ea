"""The option ``at_most_once`` of tasks: what it goes with, and what it changes."""

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import InvalidTask, task
from redis_kit.queues.tasks.task import extended
from tests.queues.features.at_most_once.tasks import note


def call(number):
    """Do nothing."""


def test_task_with_it_has_one_attempt_and_so_have_its_copies():
    assert (note.max_attempts, note.options.at_most_once) == (1, True)
    copy = note.using(queue_name="other", priority=5)
    assert (copy.max_attempts, copy.options) == (1, note.options)
    assert {note, copy, extended(note)} == {note, copy}


@pytest.mark.parametrize("given", [{}, {"at_most_once": False}])
def test_task_without_it_is_as_before(given):
    made = task(**given)(call)
    assert (made.max_attempts, made.options) == (None, None)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"max_attempts": 3}, "max_attempts"), ({"backoff": 5}, "backoff"), ({"backoff": [1]}, "backoff")],
)
def test_options_of_retries_beside_it_are_errors(given, named):
    with pytest.raises(
        InvalidValue, match=f"^{named} can't stand beside at_most_once=True: a job that has begun is not"
    ):
        task(at_most_once=True, **given)(call)
    assert task(at_most_once=True, max_attempts=1)(call).max_attempts == 1


def test_other_values_and_misspelt_options_are_errors():
    with pytest.raises(InvalidValue, match="at_most_once must be True or False, not 'yes'"):
        task(at_most_once="yes")(call)
    with pytest.raises(InvalidTask, match=r"no option 'at_most_one'. Did you mean 'at_most_once'?"):
        task(at_most_one=True)(call)
    with pytest.raises(InvalidTask, match=r"no option 'queue'. Did you mean 'queue_name'?"):
        task(queue="mail")
