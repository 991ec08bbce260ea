"""``manage.py rk_cancel``."""

import json

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.engine import ids
from tests.queues.support.putting import die
from tests.queues.support.tasks import note

AWAY = {"URL": "redis://127.0.0.1:1/0"}


@pytest.fixture
def calls(kit):
    """Two calls in the queue mail, the first of which runs."""
    results = [note.using(queue_name="mail").enqueue(name) for name in ("runs", "waits")]
    Queue("mail").claim(worker="w1")
    return results


def test_running_and_waiting_jobs_are_cancelled_by_their_ids(calls, shell):
    runs, waits = calls
    code, output, errors = shell("rk_cancel", runs.id, waits.id)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [
        f"Stopping: {runs.id}, which runs. Its worker stops it at its next heartbeat.",
        f"Removed: {waits.id}, which waited.",
    ]
    assert Queue("mail").counts().ready == 0
    waits.refresh()
    assert waits.status == "FAILED"


def test_each_job_has_its_outcome(calls, shell):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    Queue("mail").cancel(calls[1].id)
    die(Queue("mail"), "ValueError: no")
    dead = f"j{sum(Queue('mail').counts()) - 1}"
    given = [calls[0].id, dead, calls[1].id, ids.new_call("mail"), "order.42"]
    code, output, _ = shell("rk_cancel", "--queue", "mail", "--json", *given)
    assert (code, [found["outcome"] for found in json.loads(output)]) == (
        0,
        ["stopping", "dead", "ended", "not found", "not found"],
    )
    code, output, errors = shell("rk_cancel", "--queue", "mail", dead, "nobody")
    assert output.splitlines() == [f"Not cancelled: {dead} is dead.", "Not found: nobody, in the queue mail."]
    assert (code, errors) == (1, "CommandError: Nothing was cancelled.\n")


def test_id_may_lack_its_queue_if_that_is_given(calls, shell):
    short = calls[1].id.partition(".")[0]
    code, output, errors = shell("rk_cancel", short)
    assert (code, output) == (1, f"Not found: {short}, in the queue default.\n")
    assert errors == "CommandError: Nothing was cancelled. For jobs of another queue, give --queue.\n"
    assert shell("rk_cancel", short, "--queue", "mail")[1] == f"Removed: {calls[1].id}, which waited.\n"


def test_ids_that_a_project_has_chosen_are_found(kit, shell):
    queue = Queue("default")
    for id in ("order.42", "order.", "x"):
        queue.put(1, id=id)
    assert shell("rk_cancel", "order.42", "order.", "x")[0] == 0
    assert not any(queue.counts())


def test_wrong_arguments_and_unknown_queues_are_refused(calls, shell):
    assert shell("rk_cancel")[0] == 2
    assert shell("rk_cancel", "a b")[0] == 2
    code, _, errors = shell("rk_cancel", "x", "--queue", "mial")
    assert (code, "Did you mean 'mail'?" in errors) == (1, True)


def test_exit_code_says_that_redis_is_unavailable(kit, shell):
    kit.connect(AWAY)
    assert shell("rk_cancel", "x")[0] == 69
