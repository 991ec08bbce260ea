"""drain(): the errors that it raises, and what it says if it ran nothing."""

import warnings
from datetime import timedelta

import pytest
from django.db import transaction

from redis_kit.queues import Queue, QueueCounts, Retry, task
from redis_kit.testing.jobs import drain

ran = []


@task
def note(number):
    ran.append(number)


@task(queue_name="reports")
def report(): ...


@task(max_attempts=2)
def fail(word):
    raise ValueError(word)


@task
def ask_again():
    raise Retry("not yet")


def test_error_of_a_task_is_raised_after_its_attempt_is_recorded(kit):
    ran.clear()
    fail.enqueue("first")
    note.enqueue(1)
    report.enqueue()
    with pytest.raises(ValueError, match=r"^first$"):
        drain("default", "reports", raise_errors=True)
    assert Queue("default").counts() == QueueCounts(scheduled=1, ready=1, running=0, dead=0)
    assert Queue("reports").counts() == QueueCounts(scheduled=0, ready=1, running=0, dead=0)
    assert ran == []
    assert drain("default", "reports", raise_errors=True) == 2


def test_a_task_that_asks_for_another_attempt_raises_nothing(kit):
    ask_again.enqueue()
    assert drain(raise_errors=True) == 1


def test_without_the_option_no_error_is_raised(kit):
    fail.enqueue("first")
    assert drain() == 1


@pytest.mark.django_db
def test_calls_that_wait_for_the_commit_are_named(kit, django_capture_on_commit_callbacks):
    note.enqueue(1)
    transaction.on_commit(lambda: None)
    with pytest.warns(RuntimeWarning, match=r"1 task waits for the transaction to commit; use captureOnCommit"):
        assert drain() == 0
    note.enqueue(2)
    with pytest.warns(RuntimeWarning, match="2 tasks wait for the transaction to commit"):
        assert drain() == 0


@pytest.mark.django_db
def test_calls_whose_commit_was_simulated_do_not_wait(kit, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        note.enqueue(1)
    assert drain() == 1
    assert drain() == 0


def test_other_queues_with_ready_jobs_are_named(kit):
    report.enqueue()
    with pytest.warns(RuntimeWarning, match=r"^drain\(\) ran no job. Ready jobs are in: reports\.$") as found:
        assert drain() == 0
    assert found[0].filename == __file__


def test_scheduled_jobs_are_named(kit):
    note.using(run_after=timedelta(hours=1)).enqueue(1)
    with pytest.warns(RuntimeWarning, match="1 job is scheduled for later; run_now"):
        assert drain() == 0


def test_nothing_is_said_without_jobs_or_after_one_ran(kit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drain() == 0
        report.enqueue()
        note.enqueue(1)
        assert drain() == 1
