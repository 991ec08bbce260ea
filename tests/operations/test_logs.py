"""Logs as JSON through Python's logging, as ``LOGGING`` sets it up."""

import io
import json
import logging
import logging.config

import pytest

from redis_kit.queues import task
from redis_kit.testing.jobs import drain

logger = logging.getLogger("tests.json")


@task(max_attempts=1)
def talk(name):
    logger.warning("Hello %s", name)


@task(max_attempts=1)
async def talk_async():
    logger.warning("from a coroutine")


@task(max_attempts=1)
def fail():
    raise LookupError("no such order")


@pytest.fixture
def lines():
    """Set the logger up by a dict, as Django does, and return a function that reads the lines."""
    stream = io.StringIO()
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"json": {"()": "redis_kit.operations.logs.JSONFormatter"}},
            "handlers": {"json": {"class": "logging.StreamHandler", "formatter": "json", "stream": stream}},
            "loggers": {name: {"handlers": ["json"], "level": "INFO"} for name in ("tests.json", "redis_kit.worker")},
        }
    )
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for name in ("tests.json", "redis_kit.worker"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_line_has_the_fields_of_its_job(kit, transactional_db, lines):
    result = talk.enqueue("Ann")
    drain()
    logger.info("after it")
    of_job, after = lines()
    assert of_job["message"] == "Hello Ann"
    assert (of_job["level"], of_job["logger"]) == ("WARNING", "tests.json")
    assert of_job["job"] == result.id
    assert (of_job["queue"], of_job["task"], of_job["attempt"]) == ("default", talk.module_path, 1)
    assert of_job["worker"]
    assert of_job["time"].endswith("+00:00")
    assert "job" not in after


def test_line_about_a_failed_job_has_them(kit, transactional_db, lines):
    result = fail.enqueue()
    drain()
    (failed,) = lines()
    assert "is dead after attempt 1 of 1" in failed["message"]
    assert (failed["job"], failed["task"], failed["attempt"]) == (result.id, fail.module_path, 1)


def test_coroutine_has_them_too(kit, transactional_db, lines):
    result = talk_async.enqueue()
    drain()
    assert [line["job"] for line in lines()] == [result.id]


def test_each_record_is_one_line_whatever_its_text(lines):
    try:
        raise LookupError("a\nb\x1b[2J")
    except LookupError:
        logger.exception("first\nsecond\x00", extra={"order": 7, "forged": "x\n{}"})
    (line,) = lines()
    assert line["message"] == "first\nsecond\x00"
    assert (line["order"], line["forged"]) == (7, "x\n{}")
    assert "LookupError" in line["exception"]


class Broken:
    def __repr__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("value", [object(), Broken(), {1, 2}, float("nan"), b"\xff", {"a": Broken()}, "\udc80"])
def test_any_value_is_written(lines, value):
    logger.info("x", extra={"value": value})
    assert "value" in lines()[0]


def test_extra_cannot_take_the_place_of_a_field(lines):
    logger.info("real", extra={"level": "FORGED", "time": "x", "logger": "y"})
    (line,) = lines()
    assert (line["level"], line["logger"], line["message"]) == ("INFO", "tests.json", "real")


def test_log_of_the_worker_is_json(kit, transactional_db, lines):
    logging.getLogger("redis_kit.worker").error("Child %d ended.", 7)
    (line,) = lines()
    assert line["message"] == "Child 7 ended."
    assert not [name for name in line if name.startswith("_")]
