"""The demo from its start to its end, normal or not."""

import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys

import pytest
from django.conf import settings

from demo import main
from demo.management.commands.rk_demo import Command
from demo.process import Failed
from demo.session import Session, free_port, is_free, kept_home
from demo.visitor import BOT, Visitor
from tests.demo.support.demo_process import ROOT, inherited, wait_for

pytestmark = pytest.mark.alone(25)

DASHBOARD = "/admin/redis_kit/dashboard/"
FIRST_PAGE = r"First page after +([\d.]+) s"


@pytest.fixture(scope="module")
def port():
    return free_port()


def views(port):
    return sum(map(int, re.findall(r"(\d+) views?<", Visitor(port, agent=BOT).get("/").text)))


def in_shell(line, *command):
    """Return the output of a command after a line in a shell that knows nothing of the demo."""
    script = f"{line} && {shlex.join([sys.executable, str(ROOT / 'manage.py'), *command])}"
    return subprocess.run(["sh", "-c", script], env=inherited(), cwd=ROOT, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def first(start, port):
    """The first run with this data, until SIGTERM."""
    demo = start("--port", str(port))
    demo.first_page = float(demo.printed(FIRST_PAGE))
    wait_for(lambda: views(port) >= 3, seconds=60)
    admin = Visitor(port)
    assert admin.log_in("admin", "admin")
    wait_for(lambda: "order_book" in admin.get(f"{DASHBOARD}queues/").text, seconds=60)  # among the dead jobs
    wait_for(lambda: "post_parcel" in admin.get(f"{DASHBOARD}queues/?queue=parcels").text, seconds=60)  # to be retried
    demo.pages = {name: admin.get(f"{DASHBOARD}{name}/").text for name in ("queues", "locks")}
    demo.queues = json.loads(in_shell(demo.printed(r"(?m)^  (export .+)$"), "rk_queues", "--json"))
    assert admin.post("/language/setlang/", language="zh-hans", next=DASHBOARD).status == 302
    demo.pages["chinese"] = admin.get(DASHBOARD).text
    demo.end(signal.SIGTERM)
    demo.left_nothing = demo.leaves_nothing()
    return demo


def test_demo_prints_its_address_and_sigterm_ends_it_without_leftovers(first, port):
    assert first.first_page > 0
    assert f"http://127.0.0.1:{port}/" in first.text
    assert len(re.findall(r"^  \d\. ", first.text, re.MULTILINE)) == 9
    assert first.process.returncode == 0
    assert first.left_nothing
    assert is_free(port)


def test_demo_has_a_paused_queue_dead_jobs_and_locks_that_others_wait_for(first):
    for text in ("letters", "parcels", "orders", "bindery", "newsletters", "until resumed", "OutOfPrint"):
        assert text in first.pages["queues"]
    for text in ("catalogue", "desks", "librarian", "copyist"):
        assert text in first.pages["locks"]


def test_commands_of_another_terminal_reach_the_server_of_the_demo(first):
    queues = {each["queue"]: each for each in first.queues}
    assert queues["orders"]["dead"] > 0
    assert queues["newsletters"]["paused"]


def test_dashboard_is_a_click_away_from_chinese(first):
    assert '<button name="language" value="zh-hans" lang="zh-Hans">中文</button>' in first.pages["queues"]
    assert "仪表盘" in first.pages["chinese"]


def test_second_start_has_the_same_data_and_ends_with_its_worker(first, start, port):
    demo = start("--port", str(port))
    demo.printed(FIRST_PAGE)
    assert views(port) >= 3
    os.kill(demo.child("rk_worker"), signal.SIGKILL)
    assert demo.ended(seconds=60) == 1
    assert "The worker has ended." in demo.text
    assert not re.search("^Traceback", demo.text, re.MULTILINE)  # of the demo; the log of the worker may have some
    assert demo.leaves_nothing()


def test_sigkill_leaves_nothing(first, start, port):
    demo = start("--port", str(port))
    wait_for(lambda: demo.child("valkey") and demo.child("site_server.py") and not is_free(port), seconds=60)
    demo.end(signal.SIGKILL)
    wait_for(demo.leaves_nothing, seconds=60)
    with pytest.raises((OSError, http.client.HTTPException)):
        views(port)


@pytest.mark.parametrize("name", ["site", "worker", "server"])
def test_end_of_each_process_is_noticed(name, own_server):
    session = Session(free_port(), own_server.embedded)
    for child in ("site", "worker"):
        session.start(child, "-c", "import time; time.sleep(60)")
    session.check()
    pids = {child.name: child.guarded.server_pid for child in session.children} | {"server": own_server.embedded.pid}
    os.kill(pids[name], signal.SIGKILL)
    with pytest.raises(Failed, match=f"The {name} has ended."):
        wait_for(session.check, seconds=60)
    session.end()


def test_requested_port_that_is_taken_is_an_error(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        demo = start("--port", str(number))
        assert demo.ended(seconds=60) == 1
    assert f"Port {number} is taken." in demo.text
    assert demo.leaves_nothing()


def test_free_port_is_used_when_the_default_one_is_taken(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(main, "USUAL_PORT", taken.getsockname()[1])
        assert main.chosen(None) is None
        assert f"Port {main.USUAL_PORT} is taken" in capsys.readouterr().out
        with pytest.raises(Failed, match="is taken"):
            main.chosen(main.USUAL_PORT)
    assert main.chosen(None) == main.USUAL_PORT
    assert capsys.readouterr().out == ""


def test_stored_data_belong_to_one_session_at_a_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", tmp_path / "home" / "reading.sqlite3")
    with kept_home() as first:
        assert first == tmp_path / "home"
        with kept_home() as second:
            assert second is None
            assert "temporary" in capsys.readouterr().out
    with kept_home() as third:
        assert third == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "80"], "'80' is not a port"),
        (["--port", "65536"], "not a port"),
        (["--port", "web"], "not a port"),
        (["--replay", "there-is-none.log"], "can't be read: No such file"),
        (["--replay", "."], "can't be read: Is a directory"),
        (["--check", "--replay", __file__], "not allowed with"),
        (["--rate", "10"], "only with --replay"),
        (["--replay", __file__, "--rate", "0"], "from 1 to 10,000"),
        (["--replay", __file__, "--rate", "nan"], "from 1 to 10,000"),
        (["--replay", __file__, "--rate", "fast"], "from 1 to 10,000"),
        (["--chek"], "unrecognized arguments"),
        (["now"], "unrecognized arguments"),
    ],
)
def test_wrong_arguments_give_the_usage_and_exit_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "rk_demo", *arguments])
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert output.startswith("usage: manage.py rk_demo")
    assert message in output
