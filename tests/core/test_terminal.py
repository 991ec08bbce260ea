"""The base of all commands: wrong settings and exit codes."""

import argparse
import errno
import importlib
import io
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from redis_kit.core import terminal

COMMANDS = {
    **{name: [] for name in ("rk_queues", "rk_jobs", "rk_worker")},
    **{name: ["mail"] for name in ("rk_pause", "rk_resume")},
    "rk_cancel": ["x"],
    "rk_retry": ["mail", "--no-input"],
    "rk_purge": ["mail", "--state", "ready", "--no-input"],
    "rk_locks": ["list"],
    "rk_throttle": ["list"],
}


@pytest.fixture
def command(capsys):
    """Run a command as from a shell; return exit code, output and errors."""

    def run(name, *arguments):
        module = importlib.import_module(f"redis_kit.management.commands.{name}")
        with pytest.raises(SystemExit) as end:
            module.Command().run_from_argv(["manage.py", name, *arguments])
        return end.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("options", [{"QUEUES": {"MAX_ATEMPTS": 5}}, {"LOKS": {}}], ids=["section", "top"])
@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_option_ends_every_command_with_78(kit, command, name, options):
    kit.settings.REDIS_KIT = {**kit.settings.REDIS_KIT, **options}
    code, output, errors = command(name, *COMMANDS[name])
    assert code == 78
    assert "has no option" in errors
    assert output == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_the_exit_codes(command, name):
    code, output, _ = command(name, "--help")
    text = " ".join(output.split())
    assert code == 0
    assert "Exit codes: 0 " in text
    assert "78 wrong settings" in text


class Closed(io.StringIO):
    """An output that nobody reads."""

    def write(self, text):
        raise BrokenPipeError


class Talk(terminal.KitCommand):
    """A command that prints a line."""

    text = "line"

    def handle(self, **options):
        self.stdout.write(self.text)


def test_command_ends_quietly_if_nobody_reads_its_output():
    with pytest.raises(SystemExit) as end:
        call_command(Talk(stdout=Closed()))
    assert end.value.code == 141


class Full(io.StringIO):
    """An output on a full disk."""

    def flush(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_output_that_can_not_be_written_is_an_error_in_one_line(monkeypatch):
    with pytest.raises(CommandError, match=r"^The output can't be written: No space left on device\.$") as end:
        call_command(Talk(stdout=Full()))
    assert end.value.returncode == 74
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(CommandError, match=r"^The output can't be written: Bad file descriptor\.$"):
        call_command(Talk())


def test_other_error_of_the_system_stays_what_it_is():
    class Lost(Talk):
        def handle(self, **options):
            raise FileNotFoundError(errno.ENOENT, "no file")

    with pytest.raises(FileNotFoundError):
        call_command(Lost())


@pytest.mark.parametrize(
    ("name", "arguments"), [("rk_worker", ["--proces", "1"]), ("rk_throttle", ["reset", "x", "y", "--usi", "z"])]
)
def test_option_has_no_shorter_name(command, name, arguments):
    code, _, errors = command(name, *arguments)
    assert (code, f"unrecognized arguments: {arguments[-2]} {arguments[-1]}" in errors) == (2, True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 ms"), (0.0004, "0.4 ms"), (0.0071, "7 ms"), (0.999, "999 ms"), (0.9996, "1.0 s"), (-0.5, "-500 ms")],
)
def test_times_below_a_second_are_in_milliseconds(seconds, words):
    assert terminal.duration(seconds) == words


@pytest.mark.parametrize(
    ("most", "examples"), [(20, None), (60, "30s"), (86_400, "30s or 15m or 2h"), (10**7, "30s or 15m or 2h or 7d")]
)
def test_wrong_duration_is_answered_with_examples_in_its_range(most, examples):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        terminal.seconds(0.01, most)("1000d")
    wrong = f"'1000d' is not a number of seconds between 0.01 and {most:,}"
    assert str(error.value) == (f"{wrong}, or a duration such as {examples}" if examples else wrong)


@pytest.mark.parametrize("name", ["rk_locks", "rk_throttle"])
def test_command_without_an_action_lists_the_actions(kit, command, name):
    code, _, errors = command(name)
    assert (code, "required: ACTION" in errors) == (2, True)
    module = importlib.import_module(f"redis_kit.management.commands.{name}")
    lines = errors.splitlines()[-len(module.Command.actions) :]
    assert [line.split(maxsplit=1) for line in lines] == [list(pair) for pair in module.Command.actions.items()]


@pytest.mark.parametrize(
    "options",
    [["--no-color"], ["--force-color"], ["--traceback"], ["--skip-checks"], ["--verbosity", "3"], ["-v3"]],
    ids="".join,
)
@pytest.mark.parametrize("name", ["rk_locks", "rk_throttle", "rk_pageviews", "rk_signins", "rk_bloom"])
def test_options_of_django_may_follow_an_action(name, options):
    module = importlib.import_module(f"redis_kit.management.commands.{name}")
    parser = module.Command().create_parser("manage.py", name)
    action = next(iter(module.Command.actions))
    assert parser.parse_args([action, *options]) == parser.parse_args([*options, action])


def test_text_that_the_output_can_not_encode_is_escaped(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", output)
    talk = Talk()
    talk.text = "邮件"
    call_command(talk)
    assert output.buffer.getvalue() == rb"\u90ae\u4ef6" + b"\n"


def test_option_that_may_be_given_once_refuses_a_second_value(capsys):
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", action=terminal.Once)
    for value in ("ready", "dead"):
        assert parser.parse_args(["--state", value]).state == value
    with pytest.raises(SystemExit):
        parser.parse_args(["--state", "ready", "--state", "dead"])
    assert "argument --state: may be given only once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.0, "0.0 s"), (1.04, "1.0 s"), (119.9, "119.9 s"), (120, "2 min"), (404.2, "6 min 44 s")),
        *((3599.7, "1 h"), (3600, "1 h"), (5400, "1 h 30 min"), (86_399, "24 h"), (86_400, "24 h")),
        *((172_800, "2 d"), (200_000, "2 d 7 h")),
    ],
)
def test_times_from_two_minutes_on_are_in_minutes_without_zero_parts(seconds, words):
    assert terminal.rounded_duration(seconds) == words


def test_columns_are_aligned_where_letters_are_wide():
    lines = list(terminal.aligned([("QUEUE", "READY"), ("邮件", "7"), ("mail", "12")], right=(1,)))
    assert lines == ["QUEUE  READY", "邮件       7", "mail      12"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("q" * 60, "q" * 60), ("q" * 61, "q" * 59 + "…"), ("邮" * 30, "邮" * 30), ("邮" * 31, "邮" * 29 + "…"), ("", "")],
)
def test_text_is_cut_at_60_columns(text, shown):
    assert terminal.cut(text) == shown


@pytest.mark.django_db
def test_missing_table_is_named_with_its_remedy():
    with pytest.raises(CommandError, match=r"redis_kit_missing.* run manage\.py migrate\.$"), terminal.failing():
        connection.cursor().execute("SELECT * FROM redis_kit_missing")
