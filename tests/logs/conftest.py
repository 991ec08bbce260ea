"""A logger whose records the handler stores, with nothing from tests before."""

import logging

import pytest

from redis_kit.logs.buffer import buffer
from redis_kit.logs.handler import RedisHandler
from tests.queues.support.journal import Journal


@pytest.fixture(autouse=True)
def fresh():
    """No record of another test waits or is counted."""
    buffer.discard()
    with buffer._sending:
        buffer.stop()
        buffer.reset()
    yield
    buffer.discard()


@pytest.fixture
def no_thread(monkeypatch):
    """Nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "_start", lambda: None)


@pytest.fixture
def log():
    """Return a logger of the shop that has no parent."""
    logger = logging.Logger("shop.orders", logging.DEBUG)
    logger.addHandler(RedisHandler())
    return logger


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """The journal of the worker's tasks."""
    monkeypatch.setenv("JOURNAL", str(tmp_path / "journal"))
    return Journal(tmp_path / "journal")
