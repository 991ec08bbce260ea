"""The base of all commands: wrong settings and exit codes."""

import importlib
import io

import pytest
from django.core.management import call_command

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

    def handle(self, **options):
        self.stdout.write("line")


def test_command_ends_quietly_if_nobody_reads_its_output():
    with pytest.raises(SystemExit) as end:
        call_command(Talk(stdout=Closed()))
    assert end.value.code == 141


@pytest.mark.parametrize("name", ["rk_locks", "rk_throttle"])
def test_command_without_an_action_lists_the_actions(kit, command, name):
    code, _, errors = command(name)
    assert (code, "required: ACTION" in errors) == (2, True)
    module = importlib.import_module(f"redis_kit.management.commands.{name}")
    lines = errors.splitlines()[-len(module.Command.actions) :]
    assert [line.split(maxsplit=1) for line in lines] == [list(pair) for pair in module.Command.actions.items()]
