"""Workers as processes of their own, and the journal in which their tasks leave a trace."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.engine.feature import has
from redis_kit.queues.errors import NoResult
from tests.fixtures.fork_server import start_python
from tests.fixtures.process import wait_for
from tests.queues.support.journal import Journal
from tests.queues.support.processes import end

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "django", "rk_worker", "--settings", "tests.queues.support.worker_settings"]


NO_RESULTS = ("No feature of redis_kit.queues provides results", "'EnqueuedJob' object has no attribute")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """In a copy without the feature of results, tests that read a result have nothing to read."""
    try:
        return (yield)
    except (NoResult, ConfigurationError, AttributeError) as error:
        if has("results") or not (isinstance(error, NoResult) or str(error).startswith(NO_RESULTS)):
            raise
    pytest.skip("it reads the result of a call, and the feature that stores results is taken away")


def environment(settings: Any, journal: Journal) -> dict[str, str]:
    """Return the environment of a worker with the settings of the moment."""
    return {**os.environ, "REDIS_KIT": json.dumps(settings.REDIS_KIT), "JOURNAL": str(journal.path)}


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """The journal of this test, for tasks in this process too."""
    monkeypatch.setenv("JOURNAL", str(tmp_path / "journal"))
    return Journal(tmp_path / "journal")


@pytest.fixture
def start_worker(settings: Any, journal: Journal, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that starts ``rk_worker`` with the settings of the moment, and returns when it works."""
    started: list[Any] = []

    def start(
        *arguments: object,
        said: bytes = b"works on",
        before: Callable[[], Any] | None = None,
        program: Sequence[str] = (),  # that runs the command
    ) -> Any:
        log = tmp_path / f"worker{len(started)}.log"
        command, its = [*program, *COMMAND[1:], *map(str, arguments)], environment(settings, journal)
        with log.open("wb") as file:
            if before:  # the start itself is in question
                process = subprocess.Popen(
                    [sys.executable, *command], cwd=ROOT, env=its, stderr=file, preexec_fn=before, process_group=0
                )
            else:
                process = start_python(command, cwd=ROOT, env=its, text=False, stderr=file, process_group=0)
        process.log = log
        started.append(process)
        wait_for(lambda: said in log.read_bytes() or process.poll() is not None, timeout=60)
        return process

    yield start
    for process in started:
        end(process)
        with contextlib.suppress(ProcessLookupError):  # a task that holds the interpreter outlives its supervisor
            os.killpg(process.pid, signal.SIGKILL)
