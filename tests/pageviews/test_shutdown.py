"""The last views before a server ends: real servers, ended by signals. The thread sends nothing by itself."""

import contextlib
import signal

import pytest

from redis_kit.pageviews import PageViews
from tests.fixtures.servers import free_port
from tests.pageviews.support.web_servers import Site, gunicorn, look, runserver, uvicorn

VIEWS = 30

# As servers with a process for each core do: the application is loaded, and has counted, before the fork.
PREFORK = """
import os, signal, sys, threading
from wsgiref.simple_server import WSGIRequestHandler, make_server
from application import wsgi
from redis_kit.pageviews.buffer import buffer
from redis_kit.pageviews.batch import Event
from redis_kit.pageviews.periods import now

def end(*args):
    threading.Thread(target=server.shutdown).start()  # after the request that it is answering

server = make_server("127.0.0.1", int(sys.argv[1]), wsgi)
buffer.record(Event(now(), "parent", "", ""))
child = os.fork()
if child:
    signal.signal(signal.SIGTERM, lambda *args: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
signal.signal(signal.SIGTERM, end)
server.serve_forever()
"""


@pytest.fixture
def start(kit, tmp_path):
    """Start a server of the site; ``start(port, *command)`` returns its process when it has answered."""
    site = Site(tmp_path, zone=kit.settings.TIME_ZONE)
    (tmp_path / "prefork.py").write_text(PREFORK)
    with contextlib.ExitStack() as stack:

        def started(port, *command):
            process = site.start(port, command, kit.settings.REDIS_KIT)
            stack.callback(process.wait, 20)
            stack.callback(process.kill)
            return process

        yield started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_asgi_server_counts_its_last_views(kit, start, number):
    port = free_port()
    server = start(port, *uvicorn(port))
    look(port, times=VIEWS)
    server.send_signal(number)
    server.wait(30)
    assert PageViews("front").views() == VIEWS


def test_asgi_server_with_several_processes_counts_the_views_of_each(kit, start):
    port = free_port()
    server = start(port, *uvicorn(port, "--workers", "2"))
    look(port, times=VIEWS)
    server.terminate()
    server.wait(30)
    assert PageViews("front").views() == VIEWS


@pytest.mark.parametrize(
    "options",
    [("--worker-class", "sync"), ("--worker-class", "gthread", "--threads", "4", "--preload")],
    ids=["sync", "threads and preload"],
)
def test_gunicorn_counts_the_last_views_of_each_worker(kit, start, options):
    port = free_port()
    server = start(port, *gunicorn(port, *options))
    look(port, times=VIEWS)
    server.terminate()
    assert server.wait(30) == 0
    assert PageViews("front").views() == VIEWS


def test_runserver_counts_its_last_views_when_it_is_interrupted(kit, start):
    port = free_port()
    server = start(port, *runserver(port, "--noreload"))
    look(port, times=VIEWS)
    server.send_signal(signal.SIGINT)
    server.wait(30)
    assert PageViews("front").views() == VIEWS


@pytest.mark.parametrize(
    "command",
    [lambda port: uvicorn(port, application="bare"), lambda port: runserver(port, "--noreload")],
    ids=["uvicorn without the wrapper", "runserver"],
)
def test_view_that_waits_when_a_server_is_terminated_may_be_lost(kit, start, command):
    port = free_port()
    server = start(port, *command(port))
    look(port, times=VIEWS)
    server.terminate()
    server.wait(30)
    assert PageViews("front").views() == 0


def test_asgi_server_ends_and_logs_lost_views_while_redis_is_unavailable(kit, start, tmp_path):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    port = free_port()
    server = start(port, *uvicorn(port))
    look(port, times=VIEWS)
    server.terminate()
    server.wait(30)
    assert f"{VIEWS} page views are lost with this process: Redis can't be reached" in (tmp_path / "output").read_text()


def test_forked_wsgi_process_counts_its_own_views(kit, start):
    port = free_port()
    server = start(port, "-m", "prefork", str(port))
    look(port, times=VIEWS)
    server.terminate()
    assert server.wait(30) == 0
    assert PageViews("front").views() == VIEWS
    assert PageViews("parent").views() == 1
