"""The arguments of rk_worker."""

import os

import pytest
from django.core.management import CommandError, call_command

from redis_kit.queues import Queue
from redis_kit.queues.commands.rk_worker import Command, parse
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor import supervisor
from tests.fixtures.fork_server import run_python
from tests.queues.conftest import COMMAND
from tests.queues.support.duties import sweep
from tests.queues.support.tasks import remember_elsewhere

WRONG = {
    "--processes": ("whole number between 1 and 64", ["0", "65", "-1", "x", "1.5", "\u0661", ""]),
    "--threads": ("whole number between 1 and 64", ["0", "-1", "abc", "10000", "9" * 5000]),
    "--grace": ("seconds between 0 and 86,400", ["-1", "nan", "x", "inf", ""]),
    "--max-tasks": ("whole number between 1 and 1000000000", ["0", "-5", "many", "1000000001"]),
    "--max-rss": ("whole number between 16 and 1048576", ["15", "0", "1G"]),
    "--address": ("is not an IP address", ["localhost", "0.0.0", "::g"]),
    "--metrics-port": ("whole number between 1 and 65535", ["0", "65536", "http"]),
    "--health-port": ("whole number between 1 and 65535", ["0", "65536", "http"]),
    "--max-wait": ("seconds between 1 and 86,400", ["0", "0.5", "nan", "25h"]),
    "--queue-name": (
        "",
        [
            "",
            "mail,,default",
            "mail:3,default",
            "mail:0",
            "mail:1001",
            "mail:1,mail:2",
            "mail,mail:2",
            "mail:" + "9" * 99,
        ],
    ),
}


@pytest.mark.parametrize(
    ("option", "text", "told"), [(option, text, told) for option, (told, texts) in WRONG.items() for text in texts]
)
def test_wrong_value_ends_with_usage_the_range_and_2(option, text, told, capsys):
    said = refused([f"{option}={text}"], capsys)
    assert "usage: manage.py rk_worker" in said
    assert option in said
    assert told in said
    assert len(said) < 2000


@pytest.mark.parametrize(
    "arguments",
    [
        ["--queue-name"],
        ["--queue", "x", "y"],
        ["--burst", "--reload"],
        ["--health"],
        ["--threads", "1", "--threads", "2"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_end_with_2(arguments, capsys):
    refused(arguments, capsys)


def refused(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        Command().run_from_argv(["manage.py", "rk_worker", *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def test_wrong_options_from_python_are_a_command_error():
    with pytest.raises(CommandError, match="0"):
        call_command("rk_worker", "--threads", "0")


@pytest.fixture
def chosen(kit, monkeypatch):
    """The options that reach a supervisor, which then does nothing."""
    found = []

    class Idle:
        def __init__(self, options):
            found.append(options)

        def run(self):
            return 0

    monkeypatch.setattr(supervisor, "Supervisor", Idle)
    return found


def test_default_queues_are_those_in_the_settings_then_those_of_tasks(kit, chosen):
    kit.options(QUEUES={"NAMES": ["mail", "default"]})
    call_command("rk_worker")
    (options,) = chosen
    assert options == Options(options.queues)
    assert options.queues[:2] == ("mail", "default")
    assert remember_elsewhere.queue_name in options.queues[2:]


def test_every_option_reaches_the_worker(chosen):
    text = (
        "--queue-name a,b --processes 2 --threads 3 --grace 1.5 --max-tasks 7 --max-rss 99 --reload --health-port 8001"
    )
    call_command("rk_worker", *text.split(), "--max-wait", "60")
    call_command("rk_worker", "--queue-name", "a", "--burst")
    full = Options(("a", "b"), None, 2, 3, 1.5, False, 7, 99, True, 8001, 60.0)
    assert chosen == [full, Options(("a",), burst=True)]


def test_first_line_tells_the_process_and_the_server_without_its_password(kit, chosen, capsys):
    kit.settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://ann:hush@127.0.0.1:1/3"}}}
    call_command("rk_worker", "--queue-name", "mail")
    said = capsys.readouterr().out
    assert f"supervisor: pid {os.getpid()}; Redis: redis://ann:***@127.0.0.1:1/3" in said


@pytest.mark.parametrize(
    ("text", "names", "weights"),
    [
        ("mail", ("mail",), None),
        ("mail, default,mail", ("mail", "default"), None),
        ("mail:3,default:1", ("mail", "default"), (3, 1)),
        ("tenant:7:2", ("tenant:7",), (2,)),
        ("a:b", ("a:b",), None),
    ],
)
def test_queues_have_a_strict_order_or_weights(text, names, weights):
    assert parse(text) == (names, weights)


def test_list_that_a_blank_split_says_how_to_write_it(shell):
    code, _, errors = shell("rk_worker", "--queue-name", "mail,", "default")
    assert code == 2
    assert "'mail,' ends with a comma. Write the names without blanks between them, such as mail,default." in errors


def test_queues_may_be_given_one_by_one(chosen):
    call_command("rk_worker", "--queue-name", "poll", "--queue-name", "mail,poll", "--queue-name", "default")
    call_command("rk_worker", "--queue-name", "poll:3", "--queue-name", "mail:1")
    assert [options[:2] for options in chosen] == [(("poll", "mail", "default"), None), (("poll", "mail"), (3, 1))]
    with pytest.raises(CommandError, match="give each queue one weight, or none of them"):
        call_command("rk_worker", "--queue-name", "poll:3", "--queue-name", "mail")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("mial", ["Unknown queue 'mial': no task uses it and it is empty. Did you mean 'mail'?"]),
        ("qqqq,default", ["Unknown queue 'qqqq': no task uses it and it is empty. Is the name right?"]),
        ("tenant:a", ["Unknown queue 'tenant:a': no task uses it and it is empty. Is the name right?"]),
        ("mail:1,a:b:2", ["Unknown queue 'a:b': no task uses it and it is empty. Is the name right?"]),
        ("used,used:x,mail,elsewhere,labels", []),
    ],
)
def test_unknown_queue_is_warned_of_once(kit, chosen, caplog, names, told):
    kit.options(QUEUES={"NAMES": ["mail", "default"], "QUEUE_OPTIONS": {"labels": {"SINK": "shop.sinks.Printer"}}})
    Queue("used").put(1)
    Queue("used:x").put(1)
    call_command("rk_worker", "--queue-name", names)
    assert [one.getMessage() for one in caplog.records if "Unknown queue" in one.getMessage()] == told
    assert len(chosen) == 1


def test_options_of_a_misspelt_queue_are_warned_of(kit, chosen, caplog):
    Queue("mails").put(1)
    options = {name: {"DONE_LIMIT": 5} for name in ("mail", "mails", "mial", "far away")}
    kit.options(QUEUES={"NAMES": ["mail"], "QUEUE_OPTIONS": options})
    call_command("rk_worker")
    (told,) = [one.getMessage() for one in caplog.records if "QUEUE_OPTIONS" in one.getMessage()]
    assert told.endswith("has options of the queue 'mial', which no task uses. Did you mean 'mail'?")


def test_queue_that_only_workers_registered_is_warned_of_at_each_start(kit, chosen, caplog):
    kit.options(QUEUES={"NAMES": ["mail"]})
    for name in ("mial", "a:b", "later"):
        queue = WorkerQueue(name, worker="w", about="")
        queue.note()
        queue.claim()
        sweep(queue)
    Queue("later").put(1, delay=3600)
    call_command("rk_worker", "--queue-name", "mial,a:b,later")
    assert [one.getMessage() for one in caplog.records if "Unknown queue" in one.getMessage()] == [
        "Unknown queue 'mial': no task uses it and it is empty. Did you mean 'mail'?",
        "Unknown queue 'a:b': no task uses it and it is empty. Is the name right?",
    ]


def test_wrong_weight_of_one_of_several_is_an_error(kit, chosen):
    with pytest.raises(CommandError, match="a weight is a whole number between 1 and 1000") as stop:
        call_command("rk_worker", "--queue-name", "default,hi:nope")
    assert stop.value.returncode == 2
    assert not chosen
    kit.settings.REDIS_KIT = {"PREFIX": "x", "CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1"}}}
    call_command("rk_worker", "--queue-name", "default,hi:there")
    assert chosen[0].queues == ("default", "hi:there")


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 0), (1, 1)])
def test_first_line_is_left_out_on_request(verbosity, lines, kit, chosen, capsys):
    call_command("rk_worker", verbosity=verbosity)
    assert len(capsys.readouterr().out.splitlines()) == lines
    assert chosen


def test_wrong_settings_end_with_78(kit):
    for wrong in ({"CONNECTIONS": {"default": {"URL": "http://x"}}}, {"QUEUES": {"BEET": 1}}):
        kit.settings.REDIS_KIT = {"PREFIX": "x", "CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1"}}, **wrong}
        with pytest.raises(CommandError) as stop:
            call_command("rk_worker", "--burst")
        assert stop.value.returncode == 78


@pytest.mark.parametrize("more", [[], ["--skip-checks"]], ids=["checked", "unchecked"])
def test_process_with_wrong_settings_ends_with_78_and_names_them(more):
    its = {**os.environ, "REDIS_KIT": '{"CONECTIONS": {}}'}
    done = run_python([*COMMAND[1:], *more], env=its)
    assert done.returncode == 78
    assert "no option 'CONECTIONS'" in done.stderr
    assert "Traceback" not in done.stderr
