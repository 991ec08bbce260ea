"""The ports of a worker: health, readiness and metrics over HTTP."""

import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest
from prometheus_client.parser import text_string_to_metric_families

from redis_kit.queues.inspection import control_worker, list_workers
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.status_board import ALIVE, MILLION, StatusBoard
from redis_kit.queues.worker.supervisor.child import UNRESPONSIVE, Child
from redis_kit.queues.worker.supervisor.probes import MOST_CALLERS, Probes
from tests.fixtures.process import free_port, wait_for
from tests.queues.support.duties import heartbeat
from tests.queues.support.processes import children
from tests.queues.support.tasks import note_slowly

ADDRESS = "127.0.0.2"


def fetch(port, path, address=ADDRESS):
    try:
        with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def own(port):
    """Return the metrics of the worker alone."""
    families = text_string_to_metric_families(fetch(port, "/metrics")[1])
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: sample.value for sample in samples if "connection" not in sample.labels}


def reasons(port):
    status, body = fetch(port, "/readyz")
    return status, json.loads(body)["reasons"]


@pytest.mark.once
def test_ports_answer_on_the_address_of_choice(own_kit, start_worker):
    health, metrics = free_port(), free_port()
    worker = start_worker("--health-port", health, "--metrics-port", metrics, "--address", ADDRESS)
    wait_for(lambda: fetch(health, "/healthz")[0] == 200)
    wait_for(lambda: reasons(health) == (200, []))
    status, text = fetch(metrics, "/metrics")
    values = {sample.name: sample.value for each in text_string_to_metric_families(text) for sample in each.samples}
    assert (status, values["redis_kit_up"]) == (200, 1)
    assert (values["redis_kit_worker_children"], values["redis_kit_worker_ready"]) == (1, 1)
    for _ in range(3):
        note_slowly.enqueue("a", 0.1)
    wait_for(lambda: own(metrics)["redis_kit_worker_jobs_run_total"] == 3)
    assert 0.3 <= own(metrics)["redis_kit_worker_run_seconds_total"] < 3
    (child,) = children(worker)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: children(worker) not in ([], [child]))
    assert own(metrics)["redis_kit_worker_jobs_run_total"] == 3
    (running,) = list_workers()
    control_worker(running.supervisor, "quiet")
    wait_for(lambda: reasons(health) == (503, ["the worker is quiet or stopping"]))
    assert fetch(health, "/healthz")[0] == 200
    own_kit.server.freeze()
    began = monotonic()
    try:
        assert 'redis_kit_up{connection="default"} 0.0' in fetch(metrics, "/metrics")[1]
    finally:
        own_kit.server.thaw()
    assert monotonic() - began < 8
    wait_for(lambda: 'redis_kit_up{connection="default"} 1.0' in fetch(metrics, "/metrics")[1])
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert "Traceback" not in Path(worker.log).read_text()


def test_metrics_port_without_the_package_says_what_to_install(kit, shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "redis_kit.core.metrics.prometheus", raising=False)
    code, _output, errors = shell("rk_worker", "--metrics-port", free_port())
    assert code == 78
    assert "pip install 'django-redis-kit[prometheus]'" in errors


def test_one_port_may_serve_both(own_kit, start_worker):
    port = free_port()
    worker = start_worker("--health-port", port, "--metrics-port", port)
    wait_for(lambda: fetch(port, "/readyz", "127.0.0.1")[0] == 200)
    assert fetch(port, "/metrics", "127.0.0.1")[0] == 200
    assert fetch(port, "/metrics/", "127.0.0.1")[0] == 404
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0


def test_ipv6_address_is_served():
    port = free_port()
    server = Probes(Options(("default",), health_port=port, address="::1"), heartbeat())
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(fetch, port, "/livez", "[::1]")
        wait_for(lambda: server.serve(server.sockets()) or answer.done())
        assert answer.result() == (503, '{"status": "failing", "reasons": ["no child is alive"]}')
    server.close()


def test_worker_is_alive_while_a_child_responds(kit):
    boards = [StatusBoard(1), StatusBoard(1)]
    probes = Probes(Options(("default",)), supervision := heartbeat())
    assert probes.liveness() == {"status": "failing", "reasons": ["no child is alive"]}
    supervision.parent.children += [Child(0, "w", None, board, []) for board in boards]
    assert probes.liveness() == {"status": "ok", "reasons": []}
    boards[0]._words[ALIVE] -= int(UNRESPONSIVE) * MILLION
    assert probes.liveness()["status"] == "ok"
    boards[1]._words[ALIVE] -= int(UNRESPONSIVE) * MILLION
    assert probes.liveness() == {"status": "failing", "reasons": ["no child responds"]}
    for board in boards:
        board.close()


@pytest.mark.parametrize("early", [True, False])
def test_request_is_answered_as_soon_as_it_has_arrived(early):
    port = free_port()
    server = Probes(Options(("default",), health_port=port), heartbeat())
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        if not early:
            server.serve(server.sockets())
        caller.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        server.serve(server.sockets())
        assert caller.recv(4096).endswith(b'"reasons": ["no child is alive"]}')
    server.close()


def test_idle_callers_of_one_port_do_not_block_the_other(kit):
    pytest.importorskip("prometheus_client")
    health, metrics = free_port(), free_port()
    server = Probes(Options(("default",), health_port=health, metrics_port=metrics), heartbeat())
    idle = [socket.create_connection(("127.0.0.1", metrics), timeout=10) for _ in range(MOST_CALLERS)]
    for _ in idle:
        server.serve(server.sockets())
    with socket.create_connection(("127.0.0.1", health), timeout=10) as caller:
        caller.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        server.serve(server.sockets())
        assert caller.recv(4096).startswith(b"HTTP/1.1 ")
    for connection in idle:
        connection.close()
    server.close()
