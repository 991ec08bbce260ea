"""Threads of a worker, and what is raised in them."""

import signal

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.worker import process
from tests.fixtures.process import wait_for
from tests.queues.support.tasks import note

RECEIVERS = """
import sys
from redis_kit.queues import signals

def leave(**_):
    sys.exit(3)

for one in (signals.worker_started, signals.job_started, signals.job_succeeded, signals.worker_stopping):
    one.connect(leave)
"""


@pytest.mark.alone
@pytest.mark.once
def test_receivers_that_exit_cost_no_thread_and_no_job(kit, journal, start_worker, tmp_path, monkeypatch):
    folder = tmp_path / "leaving"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "tasks.py").write_text(RECEIVERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MORE_APPS", "leaving")
    worker = start_worker("--threads", 1)
    names = [f"job{number}" for number in range(6)]
    for name in names:
        note.enqueue(name)
    wait_for(lambda: journal.names() == names)
    wait_for(lambda: Queue("default").counts().running == 0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0
    said = worker.log.read_bytes()
    assert said.count(b"A receiver of a signal was about to end its thread") == 2 + 2 * len(names)
    assert b"ended by" not in said
    assert b"the worker itself failed" not in said


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_thread_goes_on_after_whatever_is_raised_in_it(caplog, monkeypatch, error):
    monkeypatch.setattr(process, "THREAD_PAUSE", 0.01)
    ran = []

    def work():
        ran.append(len(ran))
        if len(ran) < 3:
            raise error("raised in the thread")

    process.start_thread("trial", work)
    wait_for(lambda: len(ran) == 3)
    told = [one for one in caplog.records if "Thread trial of the worker failed" in one.getMessage()]
    assert [one.exc_info[0] for one in told] == [error] * 2
