"""The last records before a server ends: real servers, ended by signals. The thread sends nothing by itself."""

import contextlib
import json
import os
import signal

import pytest

from redis_kit.logs import Logs
from tests.fixtures.fork_server import start_python
from tests.fixtures.servers import free_port, wait_for
from tests.logs.support.levels import levels
from tests.pageviews.support.web_servers import ROOT, answers, gunicorn, look, uvicorn
from tests.queues.support import tasks

RECORDS = 20
SETTINGS = """
import json, os
from tests.settings import *
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
ROOT_URLCONF = "application"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"redis": {"class": "redis_kit.logs.RedisHandler"}},
    "loggers": {"shop": {"handlers": ["redis"]}},
}
"""
APPLICATION = """
import logging
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from redis_kit.core.web.lifespan import FlushAtShutdown
from redis_kit.logs.buffer import Buffer

Buffer.INTERVAL = Buffer.QUIET = 600.0

def named(request):
    logging.getLogger("shop").error("Order %d", 1)
    return HttpResponse("named")

urlpatterns = [path("named/", named)]
wsgi = get_wsgi_application()
logging.getLogger("shop").warning("Loaded")
application = FlushAtShutdown(get_asgi_application())
"""


@pytest.fixture
def start(kit, tmp_path):
    """Start a server of a site whose page logs an error; ``start(port, *command)`` returns its process."""
    (tmp_path / "site_settings.py").write_text(SETTINGS)
    (tmp_path / "application.py").write_text(APPLICATION)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "REDIS_KIT": json.dumps(kit.settings.REDIS_KIT),
    }
    with contextlib.ExitStack() as stack, (tmp_path / "output").open("ab") as output:

        def started(port, *command):
            process = start_python(command, env=environment, stdout=output, stderr=output)
            stack.callback(process.wait, 20)
            stack.callback(process.kill)
            wait_for(lambda: process.poll() is not None or answers(port), timeout=60)
            assert process.poll() is None, (tmp_path / "output").read_text()
            return process

        yield started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_asgi_server_stores_its_last_records(start, number):
    port = free_port()
    server = start(port, *uvicorn(port))
    look(port, times=RECORDS)
    server.send_signal(number)
    server.wait(30)
    assert levels() == {"ERROR": RECORDS, "WARNING": 1}


@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["plain", "preload"])
def test_gunicorn_stores_the_last_records_of_each_worker(start, options):
    port = free_port()
    server = start(port, *gunicorn(port, *options))
    look(port, times=RECORDS)
    server.terminate()
    assert server.wait(30) == 0
    assert levels() == {"ERROR": RECORDS, "WARNING": 1 if options else 2}


WORKER = """
from tests.queues.support.worker_settings import *
LOGGING["handlers"]["redis"] = {"class": "redis_kit.logs.RedisHandler"}
LOGGING["loggers"]["tests.jobs"]["handlers"] = ["redis"]
"""


def test_worker_stores_the_last_records_of_its_jobs(kit, tmp_path, journal):
    (tmp_path / "worker_site.py").write_text(WORKER)
    environment = {**os.environ, "REDIS_KIT": json.dumps(kit.settings.REDIS_KIT), "JOURNAL": str(journal.path)}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = ["-m", "django", "rk_worker", "--settings", "worker_site", "--threads", "1"]
    with (tmp_path / "output").open("wb") as output:
        worker = start_python(command, env=environment, stderr=output)
    try:
        jobs = [tasks.log_text.enqueue(f"Packed {number}") for number in range(5)]
        for job in jobs:
            assert job.wait_until_finished(timeout=30)
    finally:
        worker.terminate()
        worker.wait(30)
    records = Logs().recent("WARNING")
    assert {record.job for record in records} == {job.id for job in jobs}
    assert len(records) == 5
