"""What jobs log while they run, stored for their pages."""

import asyncio
import logging
import re
from functools import partial

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import MARGIN
from redis_kit.queues import Queue, task
from redis_kit.queues.features.logs import handler as log_line
from redis_kit.queues.features.logs.handler import JobLogHandler
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.dashboard.support.attacks import ATTACKS
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN
from tests.fixtures.fork_server import start_python

logger = logging.getLogger("shop.mail")


@task(enqueue_on_commit=False, max_attempts=2, backoff=0)
def send(texts, fail=False):
    for text in texts:
        logger.warning(text)
    if fail:
        logger.error("It failed.", exc_info=ValueError("no"))
        raise ValueError("no")


@task(enqueue_on_commit=False)
async def send_async():
    await asyncio.sleep(0)
    logger.warning("in a coroutine")


@pytest.fixture
def attach(monkeypatch):
    """A function that adds a handler with these options to a logger that passes nothing on."""

    def attached(**options):
        handler = JobLogHandler(**options)
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "propagate", False)
        return handler

    return attached


def burst():
    assert WorkerProcess(Options(("default",), threads=2, burst=True)).run() == 0


def log_of(id):
    _, details = look_up(["default"], id)
    return [line for line in map(log_line.loads, details.extras["logs"]) if line]


def test_lines_of_each_job_are_stored_with_their_attempts(kit, attach):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    attach()
    failing, other, coroutine = send.enqueue(["a"], fail=True), send.enqueue(["b"]), send_async.enqueue()
    logger.warning("no job runs here")
    burst()
    lines = log_of(failing.id)
    assert [(line.attempt, line.level, line.text.partition("\n")[0]) for line in lines] == [
        *((1, "WARNING", "a"), (1, "ERROR", "It failed.")),
        *((2, "WARNING", "a"), (2, "ERROR", "It failed.")),
    ]
    assert lines[1].text.endswith("ValueError: no")
    assert lines[0].logger == "shop.mail"
    assert lines == sorted(lines, key=lambda line: line.at)
    assert [line.text for line in log_of(other.id)] == ["b"]
    assert [line.text for line in log_of(coroutine.id)] == ["in a coroutine"]


def test_latest_lines_are_kept_and_expire(kit, attach):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    attach(lines=3, ttl=60)
    result = send.enqueue([f"line {number}" for number in range(200)])
    burst()
    assert [line.text for line in log_of(result.id)] == ["line 197", "line 198", "line 199"]
    assert 50_000 < kit.client.pttl(f"{Queue('default').key('log')}:{result.id}") <= 60_000


def test_nothing_is_sent_for_jobs_without_lines(kit, attach, commands):
    def sent():
        send.enqueue([])
        with commands(kit) as seen:
            burst()
        return seen

    without = sent()
    attach()
    assert sent() == without


def test_page_of_a_job_shows_its_log_as_text(kit, attach, boss):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    attach()
    result = send.enqueue([*ATTACKS, "token=hunter2"])
    burst()
    response = boss.get(f"{ADMIN}queues/", {"queue": "default", "id": result.id})
    (log,) = ["".join(one.text) for one in page(response).find("pre") if "WARNING" in "".join(one.text)]
    lines = [line for line in log.splitlines() if not line.startswith(MARGIN)]
    assert len(lines) == len(ATTACKS) + 1
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} 1 WARNING shop\.mail: ", line) for line in lines)
    assert lines[-1].endswith(": token=***")
    assert not page(response).find("img")


def test_long_text_is_cut_in_its_middle():
    line = log_line.loads(log_line.dumps(5.0, "INFO", "a", 1, "x" * 10_000 + "end"))
    assert len(line.text) < 2010
    assert line.text.endswith("end")
    assert log_line.loads(log_line.dumps(5.0, "INFO", "a", 1, "\ud800"))[1:] == ("INFO", "a", 1, "\\ud800")


@pytest.mark.parametrize(
    "stored", [b"", b"5", b"[1]", b'["x","a","b",1,"t"]', b"[1e999,1,1,1,1]", b"[" * 100_000, b"\xff"]
)
def test_damaged_lines_are_left_out(stored):
    assert log_line.loads(stored) is None


def test_line_that_can_not_be_formatted_does_not_stop_the_job(kit, attach, capsys):
    handler = attach()
    handler.setFormatter(logging.Formatter("%(nothing)s"))
    result = send.enqueue(["a"])
    burst()
    result.refresh()
    assert result.status == "SUCCESSFUL"
    assert "Formatting field not found" in capsys.readouterr().err


def test_lines_are_dropped_when_the_server_takes_none(kit, attach, caplog):
    attach()
    kit.client.set(f"{Queue('default').key('log')}:wrong", "x")
    worker = WorkerProcess(Options(("default",), threads=1, burst=True))
    take = partial(worker._context.parts["logs"].add, (0, "wrong"))
    take(b"line", 5, 1000)
    worker._context.parts["logs"].add((0, "right"), log_line.dumps(5.0, "INFO", "a", 1, "kept"), 5, 60_000)
    worker._context.parts["logs"].flush()
    assert kit.client.llen(f"{Queue('default').key('log')}:right") == 1
    assert caplog.text.count("Lines for the logs of jobs were dropped: The key") == 1
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    take(b"line", 5, 1000)
    worker._context.parts["logs"].flush()
    take(b"line", 5, 1000)
    worker._context.parts["logs"].flush()
    assert caplog.text.count("were dropped") == 1  # once a minute


@pytest.mark.parametrize("wrong", [{"lines": 0}, {"lines": 1001}, {"lines": "5"}, {"ttl": 0}, {"ttl": "1h"}])
def test_wrong_options_name_what_is_allowed(wrong):
    with pytest.raises(InvalidValue, match=rf"{next(iter(wrong))} must be a .* from 1 to"):
        JobLogHandler(**wrong)


def test_logging_names_the_handler_before_apps_are_loaded():
    code = """
import django, logging
from django.conf import settings
settings.configure(INSTALLED_APPS=["redis_kit"], LOGGING={
    "version": 1, "handlers": {"job": {"class": "redis_kit.queues.logs.JobLogHandler", "level": "INFO", "lines": 50}},
    "root": {"handlers": ["job"]}})
django.setup()
assert logging.getLogger().handlers[0].lines == 50
"""
    process = start_python(["-c", code])
    assert process.wait(timeout=60) == 0
