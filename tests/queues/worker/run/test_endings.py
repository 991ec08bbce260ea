"""Snooze: the job comes back later, uncounted, whatever is lost on the way."""

from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.queues import Cancelled, LeaseLost, Queue, Snooze, signals, task
from redis_kit.queues.engine import claim
from redis_kit.queues.framework import TaskResultStatus
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain, processor
from tests.queues.support import tasks

steps: list[object] = []


@pytest.fixture
def queue(kit):
    tasks.done.clear()
    steps.clear()
    return Queue("default")


@pytest.fixture
def any_queue(any_kit):
    tasks.done.clear()
    steps.clear()
    return Queue("default")


def work() -> object:
    """A function that tests make a task of: it takes the next step."""
    step = steps.pop(0) if steps else "done"
    tasks.done.append(step)
    if isinstance(step, BaseException):
        raise step
    return step


async def work_async() -> object:
    """The same as a coroutine."""
    return work()


@pytest.fixture(params=[work, work_async])
def function(request):
    return request.param


def run_now(queue):
    """Make what is scheduled ready, and run it."""
    for job in queue.peek(state="scheduled"):
        assert queue.run_now(job.id)
    drain()


def test_snoozed_job_runs_again_later_and_no_attempt_is_counted(any_queue, function):
    steps[:] = [Snooze(60, "no slot"), Snooze(timedelta(hours=1)), Snooze(0.5)]
    result, queue = task(max_attempts=1)(function).enqueue(), any_queue
    drain()
    (job,) = queue.peek(state="scheduled")
    assert (job.attempts, job.crashes) == (0, 0)
    result.refresh()
    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.READY, 0, [])
    for _ in range(3):
        run_now(queue)
    result.refresh()
    assert (result.status, result.attempts, result.return_value) == (TaskResultStatus.SUCCESSFUL, 1, "done")
    assert len(tasks.done) == 4


def test_it_is_due_after_the_delay_and_keeps_its_priority(queue, kit_now):
    steps[:] = [Snooze(60)]
    task(priority=7)(work).enqueue()
    began = kit_now()
    drain()
    (job,) = queue.peek(state="scheduled")
    assert job.priority == 7
    assert began + 60 <= job.due <= kit_now() + 60.001


@pytest.fixture
def kit_now(kit):
    """A function that returns the server's time in seconds."""

    def now():
        seconds, micros = kit.client.time()
        return seconds + micros / 1e6

    return now


def test_attempts_that_failed_before_stay_counted(queue):
    steps[:] = [ValueError(), Snooze(60), ValueError()]
    result = task(max_attempts=2, backoff=0)(work).enqueue()
    drain()
    assert queue.peek(state="scheduled")[0].attempts == 1
    run_now(queue)
    result.refresh()
    assert (result.status, len(result.errors), len(tasks.done)) == (TaskResultStatus.FAILED, 2, 3)


def test_page_of_the_job_says_once_how_often_and_why(queue):
    steps[:] = [Snooze(60, f"no slot {number}\x00\ud800") for number in range(5)]
    result = task(work).enqueue()
    drain()
    for _ in range(5):
        run_now(queue)
    _, details = look_up(["default"], result.id)
    assert (details.result.snoozes.times, details.result.snoozes.why) == (5, "no slot 4\x00\\ud800")
    assert len(details.history.begun) == 1


def test_job_without_a_result_snoozes_too(queue, kit):
    steps[:] = [Snooze(60)]
    handle = task(store_result=False)(work).enqueue()
    drain()
    assert queue.counts() == (1, 0, 0, 0)
    assert not kit.client.exists(queue.key(f"result:{handle.id}"))


def test_unique_key_stays_in_use(queue):
    steps[:] = [Snooze(60)]
    made = task(unique=True)(work)
    first = made.enqueue()
    drain()
    second = made.enqueue()
    assert (second.id, second.created) == (first.id, False)


def test_expiry_ends_the_snoozes(queue, kit):
    steps[:] = [Snooze(60), Snooze(3600)]
    result = task(expires=1000)(work).enqueue()
    drain()
    run_now(queue)
    record = kit.client.hget(queue.key("jobs"), result.id)
    numbers, _, rest = record.partition("\n")
    *others, due = numbers.split()
    earlier = " ".join([*others, str(int(due) - 1_001_000)])
    kit.client.hset(queue.key("jobs"), result.id, f"{earlier}\n{rest}")
    kit.client.zadd(queue.key("scheduled"), {result.id: 1})
    drain()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert queue.peek(state="dead")[0].reason.startswith("expired: it was to begin within 1,000 s")
    assert len(tasks.done) == 2


def test_snooze_beyond_the_expiry_ends_at_the_expiry(queue, kit, kit_now):
    steps[:] = [Snooze(3600)]
    task(expires=100)(work).enqueue()
    drain()
    ((_, due),) = kit.client.zrange(queue.key("scheduled"), 0, 0, withscores=True)
    assert due / 1000 <= kit_now() + 101


def test_cancellation_while_it_ran_wins_over_the_snooze(queue):
    cancelled = []

    class Late(Snooze):
        @property
        def delay(self):
            cancelled.append(result.cancel())
            return 60

        @delay.setter
        def delay(self, value):
            pass

    steps[:] = [Late(60)]
    result = task(work).enqueue()
    drain()
    result.refresh()
    assert (result.status, result.errors[-1].exception_class) == (TaskResultStatus.FAILED, Cancelled)
    assert cancelled
    assert queue.counts() == (0, 0, 0, 0)


def test_wrong_delay_is_refused_and_fails_the_attempt_of_a_subclass(queue):
    for wrong in (0, -1, "60", None, True, 10**12):
        with pytest.raises(InvalidValue, match="delay must be"):
            Snooze(wrong)

    class Bare(Snooze):
        def __init__(self):
            self.delay = "soon"

    steps[:] = [Bare()]
    task(max_attempts=1)(work).enqueue()
    drain()
    assert queue.peek(state="dead")[0].reason.endswith("Bare")


def test_snooze_is_repeatable_and_refused_to_a_stale_worker(queue):
    task(work).enqueue()
    source = WorkerQueue("default", worker="w", about="{}")
    (job,) = source.claim(1, worker="w")

    def snooze():
        return source.run_flow(claim.snooze(source, job, 60, expires=0, why="", ttl_ms=1000))

    assert snooze()
    assert snooze()
    assert queue.counts() == (1, 0, 0, 0)
    assert look_up(["default"], job.id)[1].result.snoozes.times == 1
    queue.run_now(job.id)
    (again,) = source.claim(1, worker="other")
    assert again.attempt == 1
    assert snooze()  # the answer to the first claim is still known
    queue.ack(again)
    with pytest.raises(LeaseLost):
        source.run_flow(claim.snooze(source, again._replace(token="w/x/0"), 60, expires=0, why="", ttl_ms=0))


def test_signal_tells_of_it_and_the_log_has_no_error(queue, caplog):
    told = []

    def receive(**said):
        told.append((said["queue"], said["task"].module_path, said["delay"]))
        raise SystemExit

    signals.job_snoozed.connect(receive)
    caplog.set_level("INFO", "redis_kit.worker")
    try:
        steps[:] = [Snooze(60, "no slot is free")]
        task(work).enqueue()
        drain()
    finally:
        signals.job_snoozed.disconnect(receive)
    assert told == [("default", f"{__name__}.work", 60)]
    lines = [record.getMessage() for record in caplog.records if record.name == "redis_kit.worker"]
    assert [line for line in lines if "snoozes for 60.0 s: 'no slot is free'" in line]


def test_outage_delays_the_return_of_the_job(own_kit):
    tasks.done.clear()
    steps[:] = [Snooze(60)]
    task(work).enqueue()
    source = WorkerQueue("default", worker="w", about="{}")
    (job,) = source.claim(1, worker="w")
    runner = processor([source])
    own_kit.server.stop()
    runner.worker.given_up.set()
    assert not runner.run(0, 0, job)  # it gives up, and the lease of the job ends
    with pytest.raises(RedisUnavailable):
        source.counts()
    own_kit.server.restart()
