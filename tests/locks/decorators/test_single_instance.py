"""Commands of which one runs at a time."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.locks import Lock, LockNotAcquired, single_instance
from redis_kit.locks.inspection import force_release, held_locks
from tests.fixtures.fork_server import start_python
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.once

AWAY = {"URL": "redis://127.0.0.1:1/0"}
NAME = "command:shop.rebuild"
HOLD = """
import asyncio, signal, threading, time
from django.core.management.base import BaseCommand
from redis_kit.locks import single_instance

@single_instance(ARGUMENTS)
class Command(BaseCommand):
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("--shop", default="a")
        parser.add_argument("--quick", action="store_true")

    def handle(self, **options):
        try:
            print("begun", flush=True)
            while not options["quick"]:  # a signal just before a longer sleep would be seen after it only
                time.sleep(0.05)
        finally:
            print("cleaned up", flush=True)
"""


@pytest.fixture
def command(kit, tmp_path, settings):
    """A function that writes the command ``rebuild`` of the app ``shop``, and returns one that starts it."""
    started = []
    folder = tmp_path / "shop" / "management" / "commands"
    folder.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()

    def write(source=HOLD, arguments=""):
        (folder / "rebuild.py").write_text(source.replace("ARGUMENTS", arguments))

        def start(*options):
            line = ["-m", "django", "rebuild", "--settings", "tests.locks.support.command_settings", *options]
            environment = {**os.environ, "PYTHONPATH": str(tmp_path), "REDIS_KIT": json.dumps(settings.REDIS_KIT)}
            started.append(start_python(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            return started[-1]

        return start

    yield write
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """The exit code, the output and the errors of a process that ends by itself."""
    output, errors = process.communicate(timeout=30)
    return process.returncode, output, errors


def begun(process):
    assert process.stdout.readline() == "begun\n"
    return process


def test_second_one_fails_and_says_who_runs(command):
    start = command()
    first = begun(start())
    code, output, errors = ended(start())
    assert (code, output) == (75, "")
    assert errors.startswith(f"CommandError: shop.rebuild was not started: <Lock {NAME!r}> is held by")
    assert f"pid {first.pid}," in errors
    assert len(errors.splitlines()) == 1


def test_second_one_is_skipped_on_request(command):
    start = command(arguments='on_busy="skip"')
    first = begun(start())
    code, output, errors = ended(start())
    assert (code, errors) == (0, "")
    assert output.startswith("shop.rebuild was not started: ")
    assert f"pid {first.pid}," in output


def test_command_that_ends_lets_the_next_one_run(command):
    start = command()
    for _ in range(2):
        assert ended(start("--quick")) == (0, "begun\ncleaned up\n", "")


def test_without_redis_it_does_not_run_and_says_so_in_one_line(command, kit):
    kit.connect(AWAY)
    code, output, errors = ended(command()())
    assert (code, output) == (69, "")
    assert errors.startswith("CommandError: shop.rebuild was not started, since it is unknown")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_signal_that_ends_it_gives_the_lock_back(command, number, code):
    first = begun(command()())
    assert Lock(NAME).locked()
    first.send_signal(number)
    found, output, _ = ended(first)
    assert (found, output) == (code, "cleaned up\n")
    assert not Lock(NAME).locked()


def test_killed_one_is_in_the_way_until_its_lease_ends(command):
    start = command(arguments="timeout=1")
    begun(start()).kill()
    wait_for(lambda: not Lock(NAME).locked())
    assert ended(start("--quick"))[0] == 0


def test_one_that_waits_runs_when_the_other_is_through(command):
    start = command(arguments="wait=20")
    first, second = begun(start()), start("--quick")
    wait_for(lambda: held_locks().locks[0].waiters == 1)
    first.terminate()
    assert ended(second) == (0, "begun\ncleaned up\n", "")


def test_lock_is_renewed_and_its_loss_ends_the_command(command):
    first = begun(command(arguments="timeout=1")())
    taken = held_locks().locks[0]
    wait_for(lambda: held_locks().locks[0].held_for > 1.5)
    assert held_locks().locks[0].fence == taken.fence
    assert force_release(NAME)
    code, output, errors = ended(first)
    assert (code, output) == (1, "cleaned up\n")
    assert "CommandError: shop.rebuild lost its lock while it ran" in errors
    assert "Traceback" not in errors


def test_command_with_a_way_of_its_own_to_stop_is_left_to_it(command):
    own = "stop = threading.Event(); signal.signal(signal.SIGTERM, lambda *_: stop.set() or print('stop'))"
    source = HOLD.replace("try:", f"{own}\n        try:").replace('options["quick"]', "stop.is_set()")
    start = command(source, "timeout=1")
    for end, code in ((lambda one: force_release(NAME), 1), (lambda one: one.terminate(), 0)):
        one = begun(start())
        wait_for(Lock(NAME).locked)
        end(one)
        found, output, _ = ended(one)
        assert (found, output) == (code, "stop\ncleaned up\n")


def test_async_command_is_run_and_stopped(command):
    source = HOLD.replace("def handle", "async def handle").replace("time.sleep(0.05)", "await asyncio.sleep(60)")
    start = command(source)
    assert ended(start("--quick")) == (0, "begun\ncleaned up\n", "")
    first = begun(start())
    assert ended(start())[0] == 75
    first.terminate()
    assert ended(first)[:2] == (143, "cleaned up\n")
    assert not Lock(NAME).locked()


def test_name_may_tell_apart_by_an_option(command):
    start = command(arguments='name="rebuild:{shop}"')
    begun(start("--shop", "b"))
    assert Lock("rebuild:b").locked()
    assert ended(start("--shop", "b"))[0] == 75
    assert ended(start("--shop", "c", "--quick"))[0] == 0


def make(handle, **options):
    """An instance of a command with this handle()."""
    kind = type("Command", (BaseCommand,), {"handle": handle, "__module__": "tests.commands.rebuild"})
    decorated = single_instance(**options)(kind) if options else single_instance(kind)
    assert decorated is kind
    return kind()


def run(command, **options):
    out = StringIO()
    call_command(command, stdout=out, skip_checks=True, **options)
    return out.getvalue()


def test_call_command_runs_it_under_the_lock(kit):
    def handle(self, *args, **options):
        (lock,) = held_locks().locks
        assert (lock.name, lock.fence) == ("command:tests.rebuild", self.lease.fence)
        assert lock.doing == "command tests.rebuild"
        assert lock.location.startswith("tests/locks/decorators/test_single_instance.py:")
        assert self.lease.held
        return "done"

    assert run(make(handle)) == "done\n"
    assert held_locks().locks == []


def test_call_command_raises_where_another_runs(kit):
    command = make(lambda self, **options: None)
    with Lock("command:tests.rebuild"), pytest.raises(CommandError, match="was not started") as caught:
        run(command)
    assert caught.value.returncode == 75


def test_what_the_command_raises_is_raised(kit):
    def handle(self, **options):
        with Lock("taken"):
            Lock("taken", blocking=False).__enter__()

    with pytest.raises(LockNotAcquired, match="taken"):
        run(make(handle, on_busy="skip"))
    assert held_locks().locks == []


def test_signals_are_as_before_afterwards(kit):
    seen = []
    command = make(lambda self, **options: seen.append(signal.getsignal(signal.SIGTERM)))
    outer = make(lambda self, **options: run(command), name="outer")
    before = signal.getsignal(signal.SIGTERM)
    run(outer)
    assert before is not seen[0]
    assert signal.getsignal(signal.SIGTERM) is before
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        run(outer)
        assert seen[1] is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_a_thread_the_loss_is_told_at_the_end(kit):
    found = []

    def handle(self, **options):
        force_release("command:tests.rebuild")
        wait_for(lambda: self.lease.lost)

    def target():
        with pytest.raises(CommandError, match="lost its lock"):
            run(make(handle, timeout=0.3))
        found.append(True)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join(20)
    assert found == [True]


def test_loss_that_nobody_noticed_is_told_at_the_end(kit):
    command = make(lambda self, **options: force_release("command:tests.rebuild"))
    with pytest.raises(CommandError, match="lost its lock"):
        run(command)


def test_server_that_is_away_at_the_end_does_not_undo_the_work(own_kit):
    command = make(lambda self, **options: own_kit.server.stop() or "done")
    assert run(command) == "done\n"


async def done(self, **options):
    return "done"


@pytest.mark.parametrize("handle", [done, lambda self, **options: done(self)])
def test_coroutine_runs_where_a_loop_is_running_already(kit, handle):
    async def main():
        return await asyncio.to_thread(run, make(handle))

    assert asyncio.run(main()) == "done\n"


@pytest.mark.parametrize("wrong", [{"on_busy": "raise"}, {"wait": -1}, {"timeout": 0}])
def test_wrong_arguments_are_refused_when_it_decorates(wrong):
    with pytest.raises(InvalidValue):
        single_instance(**wrong)


@pytest.mark.parametrize("wrong", ["", "{0}", "{self.x}", 3])
def test_wrong_names_are_refused_when_it_decorates(wrong):
    with pytest.raises(InvalidName):
        make(lambda self, **options: None, name=wrong)


@pytest.mark.parametrize("wrong", [BaseCommand, object, print])
def test_only_commands_are_decorated(wrong):
    with pytest.raises(TypeError, match="single_instance"):
        single_instance(wrong)
