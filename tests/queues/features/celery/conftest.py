"""A project with Celery: its broker, its workers, and a worker of the kit that hands jobs over."""

import base64
import json
import zlib
from typing import Any, NamedTuple

import pytest

from tests.fixtures.process import client
from tests.queues.support import fleet
from tests.queues.support.journal import LASTING, Journal

APP = "tests.queues.support.fleet"


class Sent(NamedTuple):
    """A message in the broker."""

    headers: dict[str, Any]
    properties: dict[str, Any]
    args: list[Any]
    kwargs: dict[str, Any]
    callbacks: dict[str, Any]


class Project:
    """The settings that all its processes share, and the means to start them."""

    def __init__(self, kit: Any, journal: Journal, start_celery: Any, start_worker: Any, setenv: Any) -> None:
        self.kit, self.journal = kit, journal
        self._start_celery, self._start_worker, self._setenv = start_celery, start_worker, setenv
        self.broker = ""
        self.options()

    def connect(self, broker: str) -> None:
        """Take another broker."""
        self.broker = broker
        self._setenv("CELERY_BROKER", broker)
        fleet.connect(broker)

    def options(self, **more: Any) -> None:
        """Set options of queues."""
        self.kit.options(QUEUES={**LASTING, "CELERY_APP": f"{APP}.app", **more})

    def environment(self, **more: str) -> dict[str, str]:
        """Return what its processes find in their environment."""
        settings = json.dumps(self.kit.settings.REDIS_KIT)
        own = {"DJANGO_SETTINGS_MODULE": "tests.queues.support.worker_settings", "REDIS_KIT": settings}
        return {**own, "CELERY_BROKER": self.broker, "JOURNAL": str(self.journal.path), **more}

    def start_celery(self, *options: str, **more: str) -> Any:
        """Start a worker of Celery."""
        return self._start_celery(APP, self.environment(**more), *(options or ("--pool", "solo")))

    def start_worker(self, *options: str) -> Any:
        """Start a worker of the kit, on the queues that it finds by itself."""
        return self._start_worker("--threads", "2", *options)

    def client(self) -> Any:
        """Return a client of the broker."""
        return client(self.broker)

    def sent(self, queue: str = "celery") -> list[Sent]:
        """Return the messages that wait in a queue of the broker, in the order in which they were sent."""
        with self.client() as broker:
            found = [json.loads(text) for text in reversed(broker.lrange(queue, 0, -1))]
        bodies = [json.loads(_body(each)) for each in found]
        return [Sent(each["headers"], each["properties"], *body) for each, body in zip(found, bodies, strict=True)]


def _body(message: Any) -> bytes:
    body = base64.b64decode(message["body"])
    return zlib.decompress(body) if message["headers"].get("compression") else body


@pytest.fixture
def project(kit, tcp_valkey, monkeypatch, start_celery, start_worker, journal) -> Project:
    """A project whose broker is Redis."""
    found = Project(kit, journal, start_celery, start_worker, monkeypatch.setenv)
    found.connect(f"redis://127.0.0.1:{tcp_valkey.port}/5")
    with found.client() as broker:
        broker.flushdb()
    return found
