"""A worker that is told to stop ends in time, whatever the server does."""

import signal
import time

import pytest

from redis_kit.queues import Queue
from tests.fixtures.kit import Kit
from tests.fixtures.process import wait_for
from tests.queues.support.journal import QUICK
from tests.queues.support.tasks import hold_c, wait_for_file

pytestmark = [pytest.mark.alone(35), pytest.mark.once]

GRACE = 0.5
BUSY = 4.0  # seconds that a busy machine may add


@pytest.fixture
def frozen(make_server, settings):
    """A server that is frozen and goes on at the end, and the kit on it."""
    server = make_server(tcp=True)
    kit = Kit(server, settings)
    kit.options(QUEUES=QUICK)
    yield server
    server.thaw()
    kit.close()


def stopped(worker, *numbers):
    began = time.monotonic()
    for number in numbers:
        worker.send_signal(number)
    assert worker.wait(30) == 0
    return time.monotonic() - began


@pytest.mark.parametrize("known", [False, True], ids=["before it is noticed", "when it is known"])
@pytest.mark.parametrize("task", [wait_for_file, hold_c])
def test_worker_of_a_frozen_server_ends_in_its_time_and_others_run_its_job(
    frozen, journal, start_worker, tmp_path, task, known
):
    worker = start_worker("--threads", 1, "--grace", GRACE)
    task.enqueue("long", *([str(tmp_path / "go")] if task is wait_for_file else []))
    wait_for(lambda: journal.lines(name="long"))
    frozen.freeze()
    if known:
        wait_for(lambda: b"Lost connection to Redis" in worker.log.read_bytes())
    took = stopped(worker, signal.SIGTERM)
    print(f"ended after {took:.2f} s, with a grace of {GRACE} s")
    assert took < GRACE + 2 + BUSY
    said = b"Stopped without an answer from Redis. Other workers run its jobs 0.6 s after its last heartbeat."
    assert said in worker.log.read_bytes()
    assert b"Traceback" not in worker.log.read_bytes()
    frozen.thaw()
    other = start_worker("--threads", 1)
    wait_for(lambda: len(journal.lines(name="long", step="begin")) == 2)
    (job,) = Queue("default").peek(5, state="running")
    assert job.crashes == 1  # nobody could tell the server that the job is not to blame
    other.kill()


def test_second_signal_ends_a_worker_of_a_frozen_server_within_two_seconds(frozen, journal, start_worker, tmp_path):
    worker = start_worker("--threads", 1)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="long"))
    frozen.freeze()
    assert stopped(worker, signal.SIGTERM, signal.SIGINT) < 2 + BUSY


def test_idle_worker_of_a_frozen_server_ends_in_its_time(frozen, start_worker):
    worker = start_worker("--threads", 1, "--processes", 2, "--grace", GRACE)
    frozen.freeze()
    assert stopped(worker, signal.SIGTERM) < GRACE + 2 + BUSY


def test_worker_that_never_reached_the_server_left_nothing_for_others(make_server, settings, start_worker):
    server = make_server(tcp=True)
    kit = Kit(server, settings)
    server.stop()
    worker = start_worker("--threads", 1, "--grace", GRACE, said=b"Lost connection to Redis")
    stopped(worker, signal.SIGTERM)
    assert b"Stopped without an answer from Redis. It held no jobs.\n" in worker.log.read_bytes()
    kit.close()
