"""The demonstration from its start to its end, however that comes."""

import http.client
import os
import re
import signal
import socket

import pytest
from django.conf import settings

from example_project.demo import main
from example_project.demo.child import Failed
from example_project.demo.run import free_port, is_free, kept_home
from example_project.demo.visitor import BOT, Visitor
from example_project.reading.management.commands.rk_demo import Command
from tests.example.started import wait_for

pytestmark = pytest.mark.alone

FIRST_PAGE = r"First page after +([\d.]+) s"


@pytest.fixture(scope="module")
def port():
    return free_port()


def views(port):
    return sum(map(int, re.findall(r"(\d+) views?<", Visitor(port, agent=BOT).get("/").text)))


@pytest.fixture(scope="module")
def first(start, port):
    """The first run with this data, until SIGTERM."""
    demo = start("--port", str(port))
    demo.first_page = float(demo.printed(FIRST_PAGE))
    wait_for(lambda: views(port) >= 3, seconds=20)
    demo.seconds = demo.end(signal.SIGTERM)
    demo.left_nothing = demo.leaves_nothing()
    return demo


def test_demo_says_where_it_is_and_what_to_try_and_ends_on_sigterm_leaving_nothing(first, port):
    assert first.first_page < 45
    assert f"http://127.0.0.1:{port}/" in first.text
    assert len(re.findall(r"^  \d\. ", first.text, re.MULTILINE)) == 3
    assert first.seconds < 3
    assert first.process.returncode == 0
    assert first.left_nothing
    assert is_free(port)


def test_second_start_is_quick_and_has_the_data_of_the_first_and_sigkill_leaves_nothing(first, start, port):
    demo = start("--port", str(port))
    assert float(demo.printed(FIRST_PAGE)) < 8  # under 3 s where nothing else runs
    assert views(port) >= 3
    assert all(demo.child(name) for name in ("valkey", "serve.py", "rk_worker"))
    demo.end(signal.SIGKILL)
    wait_for(demo.leaves_nothing, seconds=2)
    with pytest.raises((OSError, http.client.HTTPException)):
        views(port)


@pytest.mark.parametrize(("program", "name"), [("serve.py", "site"), ("rk_worker", "worker"), ("valkey", "server")])
def test_end_of_a_part_ends_the_demo_with_a_message(start, port, program, name):
    demo = start("--port", str(port))
    demo.printed(FIRST_PAGE)
    os.kill(demo.child(program), signal.SIGKILL)
    assert demo.ended(seconds=15) == 1
    assert f"The {name} has ended." in demo.text
    assert "Traceback" not in demo.text
    assert demo.leaves_nothing()


def test_port_that_was_asked_for_and_is_taken_is_an_error(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        demo = start("--port", str(number))
        assert demo.ended(seconds=20) == 1
    assert f"Port {number} is taken." in demo.text
    assert demo.leaves_nothing()


def test_usual_port_gives_way_to_a_free_one(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(main, "USUAL_PORT", taken.getsockname()[1])
        assert main.chosen(None) is None
        assert f"Port {main.USUAL_PORT} is taken" in capsys.readouterr().out
        with pytest.raises(Failed, match="is taken"):
            main.chosen(main.USUAL_PORT)
    assert main.chosen(None) == main.USUAL_PORT
    assert capsys.readouterr().out == ""


def test_kept_data_belong_to_one_run_at_a_time(tmp_path, monkeypatch, capsys):
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
        (["--port", "80"], "'80' is no port"),
        (["--port", "65536"], "no port"),
        (["--port", "web"], "no port"),
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
    told = capsys.readouterr().err
    assert told.startswith("usage: manage.py rk_demo")
    assert message in told
