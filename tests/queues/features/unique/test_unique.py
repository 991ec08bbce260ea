"""Unique jobs: which calls count as the same, until when, and the effect of a further call."""

import threading
from datetime import timedelta

import django
import pytest
from django.db import transaction

from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.queues import Queue, QueueCounts, signals, task
from redis_kit.queues.framework import TaskResultStatus, task_enqueued
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import tasks
from tests.queues.support.plain.tasks import task as plain_task


@pytest.fixture
def queue(kit):
    tasks.done.clear()
    return Queue("default")


def mail(user: int = 0, text: str = "", *, copy: bool = False) -> None:
    """A function that tests make a task of."""
    tasks.done.append((user, text, copy))


def fail(user: int) -> None:
    """One that fails."""
    raise ValueError(user)


def made(**options):
    return task(**options)(mail)


@pytest.mark.parametrize("until", ["done", "queued", 60, timedelta(minutes=1)], ids=str)
def test_further_put_of_a_key_gives_the_id_of_the_job_that_is_there(any_kit, until):
    queue = Queue("mail")
    first = queue.put(1, unique="a", unique_until=until)
    assert queue.put(2, unique="a", unique_until=until) == first
    assert queue.put(3, unique="b", unique_until=until) != first
    assert queue.put(4) != first
    assert queue.counts() == QueueCounts(0, 3, 0, 0)
    assert Queue("news").put(1, unique="a", unique_until=until) != first
    assert [job.payload for job in queue.claim(5)] == [1, 3, 4]


def test_key_until_done_is_free_when_the_job_is_done(queue, twin):
    first = twin(queue.put, 1, unique="a")
    (job,) = twin(queue.claim)
    assert twin(queue.put, 2, unique="a") == first
    twin(queue.nack, job, delay=60)
    assert twin(queue.put, 3, unique="a") == first
    queue.run_now(first)
    twin(queue.ack, *twin(queue.claim))
    assert twin(queue.put, 4, unique="a") != first
    assert queue.counts() == QueueCounts(0, 1, 0, 0)


def test_key_until_queued_is_free_from_the_claim_on_also_before_a_retry(queue, twin):
    first = twin(queue.put, 1, unique="a", unique_until="queued")
    (job,) = twin(queue.claim)
    second = twin(queue.put, 2, unique="a", unique_until="queued")
    assert second != first
    assert twin(queue.put, 3, unique="a", unique_until="queued") == second
    queue.delete(second)
    twin(queue.nack, job)
    assert twin(queue.put, 4, unique="a", unique_until="queued") not in (first, second)


def test_job_that_was_claimed_and_returned_has_its_key(queue):
    first = queue.put(1, unique="a", unique_until="queued")
    queue.claim(worker="w")
    queue.sign_off(worker="w")
    assert queue.put(2, unique="a", unique_until="queued") == first


def test_end_of_an_older_job_leaves_the_key_to_the_one_that_has_it_now(queue):
    queue.put(1, unique="a", unique_until="queued")
    (old,) = queue.claim()
    new = queue.put(2, unique="a", unique_until="queued")
    queue.ack(old)
    assert queue.put(3, unique="a", unique_until="queued") == new


@pytest.mark.parametrize("end", ["ack", "remove", "none"])
def test_period_lasts_whatever_becomes_of_the_job(queue, kit, end):
    first = queue.put(1, unique="a", unique_until=60)
    if end == "ack":
        queue.ack(*queue.claim())
    elif end == "remove":
        queue.delete(first)
    assert queue.put(2, unique="a", unique_until=60) == first
    (period,) = [key for key in kit.keys() if ":period:" in key]
    assert 50_000 < kit.client.pttl(period) <= 60_000
    kit.client.pexpire(period, 1)
    wait_for(lambda: queue.put(3, unique="a", unique_until=60) != first)


@pytest.mark.parametrize("state", ["ready", "scheduled", "dead", "running"])
@pytest.mark.parametrize("by", ["remove", "purge"])
def test_deleted_job_frees_its_key_and_leaves_nothing(queue, kit, state, by):
    first = queue.put(1, unique="a", delay=60 if state == "scheduled" else 0)
    if state in ("dead", "running"):
        (job,) = queue.claim()
    if state == "dead":
        queue.nack(job, max_attempts=1)
        queue.put(2, unique="other")  # what is dead holds no key, but still remembers it
    if by == "remove":
        queue.delete(first)
    elif state != "running":
        queue.purge(state)
    assert (queue.put(3, unique="a") == first) is (state == "running")
    if state != "running":
        assert first not in kit.client.hgetall(queue.key("owners"))
        assert first not in kit.client.hvals(queue.key("unique"))


@pytest.mark.parametrize("until", ["done", "queued"])
@pytest.mark.parametrize("stored", [True, False], ids=["with a result", "without"])
def test_job_that_is_done_leaves_nothing(queue, kit, until, stored):
    made(unique=until, store_result=stored).enqueue(1)
    assert kit.client.hlen(queue.key("owners")) == 1
    assert drain() == 1
    assert not kit.client.exists(queue.key("unique"), queue.key("owners"))


def test_dead_job_frees_its_key_and_has_it_again_when_requeued(queue, twin):
    first = queue.put(1, unique="a")
    queue.nack(*queue.claim(), max_attempts=1)
    other = queue.put(2, unique="a")
    assert other != first
    queue.delete(other)
    assert queue.requeue([first]) == 1
    assert queue.put(3, unique="a") == first
    queue.ack(*queue.claim())
    assert queue.put(4, unique="a") != first


def test_dead_job_that_is_removed_leaves_its_key_to_the_job_that_has_it(queue):
    first = queue.put(1, unique="a")
    queue.nack(*queue.claim(), max_attempts=1)
    other = queue.put(2, unique="a")
    assert queue.delete(first)
    assert queue.put(3, unique="a") == other


def test_job_returned_from_a_dead_worker_has_its_key(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    first = queue.put(1, unique="a")
    queue.claim(worker="w1")
    wait_for(lambda: queue.heartbeat(worker="w2"))
    assert queue.put(2, unique="a") == first


def test_requeued_job_runs_even_if_another_has_its_key(queue):
    first = queue.put(1, unique="a")
    queue.nack(*queue.claim(), max_attempts=1)
    other = queue.put(2, unique="a")
    queue.requeue()
    assert queue.put(3, unique="a") == other
    assert {job.id for job in queue.claim(5)} == {first, other}
    assert queue.put(4, unique="a") == other


def test_dead_job_that_was_poison_frees_its_key(queue, kit):
    kit.options(QUEUES={"MAX_CRASHES": 1, "HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    first = queue.put(1, unique="a")
    queue.claim(worker="w1")
    wait_for(lambda: queue.heartbeat(worker="w2") or queue.counts().dead)
    assert queue.put(2, unique="a") != first


def test_dead_jobs_that_make_room_leave_nothing(queue, kit):
    kit.options(QUEUES={"DEAD_LIMIT": 2})
    for number in range(5):
        queue.put(number, unique=f"key {number}")
        queue.nack(*queue.claim(), max_attempts=1)
    assert kit.client.hlen(queue.key("owners")) == kit.client.hlen(queue.key("unique")) == 2


def test_reused_id_of_a_dead_job_has_the_key_of_the_new_job_only(queue):
    queue.put(1, id="x", unique="a")
    queue.nack(*queue.claim(), max_attempts=1)
    queue.put(2, id="x")
    second = queue.put(3, unique="a")
    assert second != "x"
    queue.nack(*queue.claim(), max_attempts=1)
    assert queue.put(4, id="x", unique="b") == queue.put(5, unique="b") == "x"
    assert queue.put(6, id="x", unique="c") == "x"
    assert queue.put(7, unique="c") != "x"


def test_id_of_a_dead_job_that_is_used_again_leaves_nothing_of_its_old_key(queue, kit):
    queue.put(1, id="x", unique="a")
    queue.nack(*queue.claim(), max_attempts=1)
    queue.put(2, id="x", unique="b")
    queue.delete("x")
    assert not kit.client.exists(queue.key("unique"), queue.key("owners"))


def test_flushed_keys_block_no_job(queue, kit):
    for part in ("jobs", "owners", "unique"):
        first = queue.put(1, unique="a")
        kit.client.delete(queue.key(part))
        assert queue.put(2, unique="a") != first


def test_many_at_once_make_one_job(queue):
    ids = []
    threads = [threading.Thread(target=lambda: ids.append(queue.put(1, unique="a"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 20
    assert len(set(ids)) == 1
    assert queue.counts() == QueueCounts(0, 1, 0, 0)


def test_unique_put_is_one_command_and_a_further_one_too(queue, twin, kit, commands):
    twin(queue.put, 0)
    with commands(kit) as sent:
        twin(queue.put, 1, unique="a")
        twin(queue.put, 2, unique="a")
        twin(queue.put, 3, unique="a", replace=True)
    assert sent == ["EVALSHA"] * 3


@pytest.mark.parametrize("until", ["done", "queued", 60], ids=str)
def test_job_that_waits_is_replaced_under_its_id(queue, twin, until):
    given = {"unique": "a", "unique_until": until, "replace": True}
    first = twin(queue.put, 1, **given)
    assert twin(queue.put, 2, delay=60, priority=7, **given) == first
    assert queue.counts() == QueueCounts(1, 0, 0, 0)
    found = queue.get(first)
    assert (found.payload, found.priority) == (2, 7)
    assert twin(queue.put, 3, delay=90, **given) == first
    assert queue.get(first).due - found.due == pytest.approx(30, abs=5)
    assert twin(queue.put, 4, **given) == first
    (job,) = queue.claim(5)
    assert (job.id, job.payload, job.priority) == (first, 4, 0)


def test_replaced_job_keeps_its_place_unless_the_priority_changes(queue):
    for name in "abc":
        queue.put(name, unique=name)
    queue.put("B", unique="b", replace=True)
    queue.put("A", unique="a", priority=1, replace=True)
    queue.put("a", unique="a", replace=True)
    assert [job.payload for job in queue.claim(5)] == ["B", "c", "a"]


def test_job_that_runs_is_not_replaced(queue):
    first = queue.put(1, unique="a")
    (job,) = queue.claim()
    assert queue.put(2, unique="a", replace=True) == first
    queue.nack(job, delay=60)
    assert queue.put(3, unique="a", replace=True) == first
    (again,) = queue.claim(5)
    assert (again.payload, again.attempt) == (3, 2)


def test_job_that_becomes_ready_by_a_replacement_wakes_a_worker(queue, kit):
    queue.put(1, unique="a", delay=60)
    kit.client.delete(queue.key("signal"))
    queue.put(2, unique="a", delay=90, replace=True)
    queue.put(3, unique="a", replace=True)
    assert kit.client.llen(queue.key("signal")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"unique": ""},
        {"unique": 5},
        {"unique": "x" * 513},
        {"unique": "a", "unique_until": 0},
        {"unique": "a", "unique_until": -1},
        {"unique": "a", "unique_until": "started"},
        {"unique": "a", "unique_until": True},
        {"unique": "a", "unique_until": None},
        {"unique": "a", "replace": 1},
        {"replace": True},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused_before_anything_is_sent(wrong):
    with pytest.raises(InvalidValue, match=list(wrong)[-1]):
        Queue("mail").put(1, **wrong)


@pytest.mark.parametrize("part", ["unique", "owners", "jobs", "dead", "reasons", "ready", "signal", "sequence"])
def test_key_of_another_type_is_a_conflict_and_changes_nothing(queue, kit, part):
    queue.put(1, unique="a")
    queue.put(2, unique="b", delay=60)
    queue.put(3, id="dead", unique="c", priority=9)
    queue.nack(*queue.claim(), max_attempts=1)
    key = queue.key(part)
    kit.client.delete(key)
    kit.client.zadd(key, {"x": 1}) if part in ("unique", "jobs", "owners", "reasons") else kit.client.hset(key, "x", 1)
    conflicts = 0
    for call in (
        lambda: queue.put(4, unique="a"),
        lambda: queue.put(5, unique="b", replace=True),
        lambda: queue.put(6, id="dead"),
        lambda: queue.delete("dead"),
        lambda: queue.requeue(["dead"]),
        lambda: queue.purge("scheduled"),
    ):
        before = {name: kit.client.dump(name) for name in kit.keys()}
        try:
            call()
        except KeyConflict:
            conflicts += 1
            assert {name: kit.client.dump(name) for name in kit.keys()} == before
    assert conflicts >= 1


def test_further_call_gets_the_result_of_the_job_that_is_there(queue, twin):
    unique = made(unique=True)
    heard = []
    signals.job_enqueued.connect(receive := lambda **said: heard.append(said["id"]))
    task_enqueued.connect(told := lambda task_result, **_: heard.append(task_result.id))
    try:
        first = twin(unique.enqueue, 1, text="a")
        second = twin(unique.enqueue, user=1, text="a", copy=False)
        other = twin(unique.enqueue, 2, text="a")
    finally:
        signals.job_enqueued.disconnect(receive)
        task_enqueued.disconnect(told)
    assert (first.created, second.created, other.created) == (True, False, True)
    assert second == first != other
    assert (second.args, second.kwargs) == ([1], {"text": "a"})
    assert heard == [first.id] * 2 + [other.id] * 2
    queue.claim(1, worker="w")
    assert twin(unique.enqueue, 1, "a").status == TaskResultStatus.RUNNING
    queue.sign_off(worker="w")
    assert drain() == 2
    assert tasks.done == [(1, "a", False), (2, "a", False)]
    again = twin(unique.enqueue, 1, "a")
    assert again.created is True
    assert again.id != first.id
    twin(first.refresh)
    assert first.created is True
    assert twin(unique.get_result, first.id).created is None


def test_calls_of_tasks_that_are_not_unique_are_all_created(queue, twin):
    assert twin(tasks.remember.enqueue, 1).created is True
    assert twin(tasks.remember.enqueue, 1).created is True
    assert queue.counts().ready == 2


def test_further_call_in_a_period_gets_the_result_of_the_ended_job(queue, twin):
    unique = made(unique=timedelta(minutes=1))
    first = twin(unique.enqueue, 1)
    drain()
    second = twin(unique.enqueue, 1)
    assert (second.id, second.created, second.status) == (first.id, False, TaskResultStatus.SUCCESSFUL)
    assert drain() == 0


def test_further_call_in_a_period_has_the_id_even_without_the_result(queue, kit, twin):
    unique = made(unique=60)
    first = twin(unique.enqueue, 1)
    drain()
    kit.client.delete(queue.key(f"result:{first.id}"))
    second = twin(unique.enqueue, 1)
    assert (second.id, second.created) == (first.id, False)


@pytest.mark.parametrize(
    ("by", "same", "other"),
    [
        (("user",), [(1, "a"), (1, "b")], (2, "a")),
        (("user", "copy"), [(1, "a"), (1, "b")], (3,)),
        (lambda user, *rest: f"user {user % 2}", [(1, "a"), (3, "b")], (2,)),
        (None, [(1,), (1, "")], (1, "a")),
        (None, [({"a": 1, "b": 2},), ({"b": 2, "a": 1},)], ({"a": 1},)),
    ],
    ids=["name", "names", "function", "all", "objects"],
)
def test_options_of_the_task_decide_which_calls_are_the_same(queue, by, same, other):
    unique = made(unique=True, unique_by=by)
    assert len({unique.enqueue(*args).id for args in same}) == 1
    assert unique.enqueue(*other).created


def test_keys_of_two_tasks_are_two_keys(queue):
    one, two = made(unique=True, unique_by=lambda *_: "x"), task(unique=True, unique_by=lambda *_: "x")(fail)
    assert one.enqueue(1).created
    assert two.enqueue(1).created
    assert queue.put(1, unique="x")
    assert queue.counts().ready == 3


def test_call_that_fails_keeps_its_key_until_it_is_dead(queue, kit):
    unique = task(unique=True, max_attempts=1)(fail)
    first = unique.enqueue(1)
    drain()
    assert unique.enqueue(1).created
    assert unique.get_result(first.id).status == TaskResultStatus.FAILED


def test_cancelled_call_frees_its_key(queue, kit, twin):
    pytest.importorskip("redis_kit.queues.features.cancel")
    unique = made(unique=True)
    assert twin(unique.enqueue(1).cancel)
    assert not kit.client.exists(queue.key("unique"), queue.key("owners"))
    assert unique.enqueue(1).created


@pytest.mark.filterwarnings("ignore:drain:RuntimeWarning")  # it finds only the scheduled job at first
def test_debounce_runs_once_with_the_last_arguments_after_a_quiet_time(any_kit):
    tasks.done.clear()
    debounce = made(unique="queued", unique_by=("user",), replace=True).using(run_after=timedelta(seconds=0.3))
    results = [debounce.enqueue(1, text) for text in ("a", "ab", "abc")]
    assert len({result.id for result in results}) == 1
    assert [result.created for result in results] == [True, False, False]
    assert results[-1].args == [1, "abc"]
    assert Queue("default").counts() == QueueCounts(1, 0, 0, 0)
    wait_for(drain)
    assert tasks.done == [(1, "abc", False)]
    results[0].refresh()
    assert (results[0].args, results[0].attempts, results[0].created) == ([1, "abc"], 1, True)
    assert debounce.enqueue(1, "x").created


def test_call_that_waits_for_a_retry_is_replaced_and_keeps_its_attempts(queue):
    unique = task(unique=True, unique_by=lambda _: "", replace=True, max_attempts=2)(fail)
    first = unique.enqueue(1)
    drain()
    second = unique.enqueue(2)
    assert (second.id, second.created) == (first.id, False)
    drain()
    first.refresh()
    assert (first.args, first.attempts, first.status) == ([2], 2, TaskResultStatus.FAILED)


def test_replacing_call_is_one_command_and_another_that_finds_one_two(queue, twin, kit, commands):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    unique, replacing = made(unique=True), made(unique=True, replace=True)
    twin(unique.enqueue, 1)
    with commands(kit) as sent:
        twin(replacing.enqueue, 1)
    assert sent == ["EVALSHA"]
    with commands(kit) as sent:
        twin(unique.enqueue, 1)
    assert sent == ["EVALSHA"] * 2


def test_task_that_stores_no_result_says_which_job_there_is(queue, twin):
    unique = made(unique=True, store_result=False)
    first, second = twin(unique.enqueue, 1), twin(unique.enqueue, 1)
    assert (first.created, second.created, second) == (True, False, first)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stored", [True, False])
def test_result_of_a_call_in_a_transaction_is_set_right_after_the_commit(queue, stored):
    unique = made(unique=True, store_result=stored)
    first = unique.enqueue(1)
    with transaction.atomic():
        second, other = unique.enqueue(1), unique.enqueue(2)
        assert second.created is other.created is None
        assert second.id != first.id
    assert (second.id, second.created, other.created) == (first.id, False, True)
    assert queue.counts().ready == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"unique": "started"}, "'done', 'queued'"),
        ({"unique": "yes"}, "unique must be True, False, 'done', 'queued', or a time "),
        ({"unique": 0}, "'done', 'queued'"),
        ({"unique": -5}, "unique must be"),
        ({"unique": None}, "'done', 'queued'"),
        ({"unique": timedelta(0)}, "'done', 'queued'"),
        ({"unique_by": ("user",)}, "unique_by needs unique"),
        ({"replace": True}, "replace needs unique"),
        ({"unique": True, "replace": "yes"}, "True or False"),
        ({"unique": True, "unique_by": ("usr",)}, "user, text, copy"),
        ({"unique": True, "unique_by": ()}, "user, text, copy"),
        ({"unique": True, "unique_by": "user"}, r"user, text, copy, not 'user'\. Write \('user',\)\."),
        ({"unique": True, "unique_by": ["user", "text"]}, r"Write \('user', 'text'\)\."),
        ({"unique": True, "unique_by": "usr"}, r"Did you mean 'user'\?"),
        ({"unique": True, "unique_by": ("text", "usr")}, r"Did you mean 'user'\?"),
        ({"unique": True, "unique_by": ["text", 5]}, r"5\]\.$"),
        ({"unique": True, "unique_by": 5}, "user, text, copy"),
    ],
    ids=repr,
)
def test_wrong_options_are_refused_by_the_definition_of_the_task(wrong, said):
    with pytest.raises(InvalidValue, match=said):
        made(**wrong)


def test_decorator_of_the_framework_takes_the_options_too(queue, settings):
    if django.VERSION[:2] == (6, 0):
        pytest.skip("the decorator of Django 6.0 takes no further options")
    settings.TASKS = {"default": {"BACKEND": "redis_kit.queues.backend.RedisTaskBackend"}}
    unique = plain_task(unique=True, unique_by=("user",), expires=60, backoff=[5, 6])(mail)
    first, second = unique.enqueue(1), unique.enqueue(1, "x")
    assert (second.id, second.created) == (first.id, False)
    with pytest.raises(InvalidValue, match="unique must be"):
        plain_task(unique="started")(mail)


def test_function_that_tells_same_calls_must_return_text(queue):
    with pytest.raises(InvalidValue, match="must return text, not 1"):
        made(unique=True, unique_by=lambda *_: 1).enqueue(1)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_context_does_not_count_when_calls_are_compared(queue):
    def told(context, user): ...

    told.__qualname__ = "told"
    unique = task(unique=True, takes_context=True, unique_by=("user",))(told)
    assert unique.enqueue(1).created
    assert not unique.enqueue(1).created
    with pytest.raises(InvalidValue, match="among user, not"):
        task(unique=True, takes_context=True, unique_by=("context",))(told)
