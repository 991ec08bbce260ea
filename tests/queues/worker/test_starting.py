"""Signals and limits that a worker meets while it starts."""

import signal
import time

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.inspection import list_workers
from tests.fixtures.process import free_port, wait_for
from tests.queues.support.journal import QUICK
from tests.queues.support.tasks import note

pytestmark = [pytest.mark.alone, pytest.mark.once]


@pytest.fixture
def queue(kit):
    return Queue("default")


@pytest.fixture
def app(tmp_path, monkeypatch):
    """A function that gives the workers of this test an app, whose tasks are this text."""

    def make(text):
        folder = tmp_path / "starting_app"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "tasks.py").write_text(f"import os, signal, weakref\n{text}\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("MORE_APPS", "starting_app")

    return make


def test_interrupt_in_a_callback_of_the_start_is_not_lost(queue, journal, start_worker, app):
    app("class One: pass\none = One()\nref = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.SIGINT))\ndel one")
    worker = start_worker()
    assert worker.wait(10) == -signal.SIGINT


def test_signals_that_were_blocked_by_what_started_the_worker_reach_it(queue, journal, start_worker):
    blocked = {signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM}
    worker = start_worker(before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0


def test_worker_that_is_made_quiet_while_it_starts_is_quiet_and_ends(queue, journal, start_worker, app):
    app("os.kill(os.getpid(), signal.SIGTSTP)")
    worker = start_worker(said=b"claims no more")
    note.enqueue("later")
    time.sleep(0.3)
    assert queue.counts().ready == 1
    worker.send_signal(signal.SIGCONT)
    wait_for(lambda: journal.names() == ["later"])
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0


def test_stacks_of_a_worker_that_starts_are_told(queue, journal, start_worker, app):
    app("os.kill(os.getpid(), signal.SIGTTIN)")
    worker = start_worker()
    assert b"starting_app/tasks.py" in worker.log.read_bytes()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0


def test_worker_with_many_descriptors_beats_and_works(kit, queue, journal, start_worker, app):
    kit.options(QUEUES=QUICK)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))"
    app(f"{limit}\nheld = [os.dup(2) for _ in range(1100)]")
    worker = start_worker("--threads", 1, "--health-port", free_port())
    (first,) = wait_for(list_workers)
    time.sleep(2 * QUICK["WORKER_TIMEOUT"])
    note.enqueue("one")
    wait_for(lambda: journal.names() == ["one"])
    assert [one.id for one in list_workers()] == [first.id]
    assert b"failed" not in worker.log.read_bytes()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0
