"""Restarts of a worker whose code or settings change, or break."""

import json
import os
import subprocess
import sys
import time

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.worker.supervisor import autoreload
from tests.fixtures.process import wait_for
from tests.queues.support import putting
from tests.queues.support.processes import stopped

pytestmark = [pytest.mark.alone(20), pytest.mark.once]

# A worker that looks for changes more often than once a second.
OFTEN = """
from redis_kit.queues.worker.supervisor import autoreload
autoreload.EVERY = 0.5
"""


# Settings that are saved again, wrong, just before the restarted worker loads them.
HALF_SAVED = """
import os, pathlib
from tests.queues.support.worker_settings import *
if "REDIS_KIT_RESTARTED" in os.environ:
    pathlib.Path(__file__).write_text("INSTALLED_APPS = [")
    raise RuntimeError("half saved")
"""


# Loads a module, which another save breaks just before the restarted worker loads it.
LATE = """
import importlib, os, pathlib
from django.core.checks import register

def load(name):
    path = pathlib.Path(__file__).with_name(f"{name}.py")
    if not path.with_suffix(".broken").exists():
        path.with_suffix(".broken").touch()
        path.write_text("def broken(:")
    elif not path.exists():
        path.touch()
    importlib.invalidate_caches()
    importlib.import_module(f"changing.{name}")

@register()
def check(app_configs, **kwargs):
    if pathlib.Path(__file__).with_name("by_check.py").exists():
        load("by_check")
    return []
"""
PROGRAM = """
import json, sys
from django.utils.autoreload import get_child_arguments
print(json.dumps([__name__, sys.path[0], sys.argv[1:], [str(one) for one in get_child_arguments()]]))
sys.exit(3)
"""


@pytest.fixture
def queue(kit):
    return Queue("default")


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The folder of an app of the workers that are started."""
    folder = tmp_path / "changing"
    folder.mkdir()
    (folder / "__init__.py").write_text(OFTEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MORE_APPS", "changing")
    return folder


def test_worker_starts_again_when_its_code_has_changed(queue, journal, start_worker, app):
    write(app, "first")
    worker = start_worker("--reload", "--threads", 1)
    putting.put(queue, "one", "changing.tasks.tell")
    wait_for(lambda: journal.names("told") == ["first"])
    (app / "tasks.py").write_text("def broken(:\n")
    wait_for(lambda: b"can't be used yet" in worker.log.read_bytes())
    assert worker.log.read_bytes().count(b"works on") == 1
    write(app, "second", first="import changing.more")
    wait_for(lambda: b"can't be loaded; the worker waits" in worker.log.read_bytes(), timeout=30)
    assert b"No module named 'changing.more'" in worker.log.read_bytes()
    assert worker.poll() is None
    assert worker.log.read_bytes().count(b"works on") == 1
    (app / "more.py").write_text("")
    wait_for(lambda: worker.log.read_bytes().count(b"works on") == 2, timeout=30)
    assert worker.poll() is None
    putting.put(queue, "two", "changing.tasks.tell")
    wait_for(lambda: journal.names("told") == ["first", "second"])
    stopped(worker, within=10)


@pytest.mark.parametrize("module", ["by_check", "by_task"])
def test_code_that_breaks_during_a_restart_is_waited_for(kit, start_worker, app, monkeypatch, module):
    (app / "__init__.py").write_text(OFTEN + LATE)
    (app / f"{module}.py").touch()
    write(app, "first", first=f"from changing import load; load({module!r})" if module == "by_task" else "")
    monkeypatch.setenv(autoreload.RESTARTED, str(time.time()))  # as restart() starts it
    program = ("-m", autoreload.PROGRAM)
    worker = start_worker("--reload", "--threads", 1, said=b"can't be loaded; the worker waits", program=program)
    assert worker.poll() is None, worker.log.read_text()
    if module == "by_task":
        (app / f"{module}.py").write_text("")
        os.utime(app / f"{module}.py", (time.time() + 50, time.time() + 50))
        wait_for(lambda: b"works on" in worker.log.read_bytes(), timeout=60)
    stopped(worker, within=10)


def test_settings_that_break_during_a_restart_are_waited_for(kit, start_worker, app, monkeypatch):
    (app / "settings.py").write_text(HALF_SAVED)
    write(app, "first")
    monkeypatch.setenv(autoreload.RESTARTED, str(time.time()))
    options = ("--reload", "--threads", 1, "--settings", "changing.settings")
    worker = start_worker(*options, said=b"can't be loaded; the worker waits", program=("-m", autoreload.PROGRAM))
    wait_for(lambda: b"SyntaxError" in worker.log.read_bytes())
    (app / "settings.py").write_text("from tests.queues.support.worker_settings import *")
    os.utime(app / "settings.py", (time.time() + 50, time.time() + 50))
    wait_for(lambda: b"works on" in worker.log.read_bytes(), timeout=60)
    stopped(worker, within=10)


def test_embedded_server_is_shared_by_the_processes_and_outlives_a_reload(kit, journal, start_worker, app, monkeypatch):
    kit.connect({"EMBEDDED": True})
    write(app, "first", "Queue('default').pause(); tell.enqueue()")
    monkeypatch.setenv("REDIS_KIT_EMBEDDED", "force")
    monkeypatch.delenv("REDIS_KIT_EMBEDDED_URL", raising=False)
    worker = start_worker("--reload", "--processes", 2, "--threads", 1)
    wait_for(lambda: len(journal.lines(name="worker", step="started")) == 2)
    write(app, "second", "Queue('default').resume()")
    wait_for(lambda: journal.names("told") == ["second"] * 2, timeout=30)
    assert b"Lost connection to Redis" not in worker.log.read_bytes()
    stopped(worker, within=10)


def write(app, text, at_start="pass", first=""):
    path = app / "tasks.py"
    path.write_text(
        f"{first}\nfrom redis_kit.queues import Queue, signals, task\nfrom tests.queues.support.tasks import journal\n"
        f"@task\ndef tell():\n    journal({text!r}, 'told')\n"
        f"def start(**_):\n    {at_start}\n"
        "signals.worker_started.connect(start)\n"
    )
    os.utime(path, (time.time() + len(text), time.time() + len(text)))  # clocks of files may be coarse


@pytest.mark.parametrize("start", [["folder/program.py"], ["-m", "folder.program"]])
def test_program_runs_as_if_it_had_been_started_itself(tmp_path, start):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    command, runs = [sys.executable, "-W", "ignore", *start, "a", "-b"], []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop(autoreload.RESTARTED, None)
    for arguments in (command, [*command[:3], "-m", autoreload.PROGRAM, *command[3:]]):
        process = subprocess.run(arguments, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=False)
        assert process.returncode == 3
        runs.append(json.loads(process.stdout))
    assert runs[0] == runs[1]
    assert runs[0][0] == "__main__"
