"""The modules that workers import."""

import sys

import pytest
from django.core.management import CommandError, call_command
from django.test import modify_settings

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import framework
from redis_kit.queues.component import Queues
from redis_kit.queues.features.unknown import recall
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery, registry
from tests.queues.support import fleet

pytestmark = pytest.mark.skipif(not framework.FOUND, reason="tasks need a framework")
TASK = "from redis_kit.queues import task\n@task\ndef send(): pass\n"


@pytest.fixture
def stall(tmp_path, monkeypatch):
    """A function that makes the installed app ``stall`` of these files; each of its modules can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(files):
        for name, text in {"stall/__init__.py": "", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    make({})
    with modify_settings(INSTALLED_APPS={"append": ["stall"]}):
        yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "stall"]:
        del sys.modules[name]
    for name in [name for name in registry._tasks if name.startswith("stall.")]:
        del registry._tasks[name]


def test_task_of_the_shell_is_to_be_defined_in_a_module():
    remedy = recall.remedy_for("django.core.management.commands.shell.f")
    assert remedy == "define it in a module, such as tasks.py: it was defined in the shell"


@pytest.mark.parametrize("module", ["tests.app.tasks", __name__])
def test_worker_that_imports_the_module_of_a_new_task_is_to_restart(module):
    text = "restart this worker with the new code (or use --reload), or keep the old name of the task"
    assert recall.remedy_for(f"{module}.new") == text
    assert recall.remedy_for("stall.services.new").startswith("add 'stall.services' to REDIS_KIT['QUEUES']['IMPORTS']")


def test_modules_of_the_option_are_imported_with_those_of_the_apps(kit, stall):
    stall({"stall/services.py": TASK, "stall/tasks.py": TASK})
    kit.options(QUEUES={"IMPORTS": ["stall.services"]})
    discovery.discover()
    assert {"stall.services.send", "stall.tasks.send"} <= set(registry._tasks)


@pytest.mark.parametrize("name", ["stall.servces", "stall.services.mail", "stall_of_nobody.tasks"])
def test_module_that_does_not_exist_fails_the_check_and_the_discovery(kit, stall, name):
    stall({"stall/services.py": "raise AssertionError('imported by the check')"})
    kit.options(QUEUES={"IMPORTS": [name]})
    (error,) = Queues().checks()
    assert error.id == "redis_kit.E017"
    assert error.msg == f"REDIS_KIT['QUEUES']['IMPORTS'] holds {name!r}, but no module has that name."
    assert ("'stall.services'" in error.hint) == (name != "stall.services.mail") or "dotted path" in error.hint
    stall({"stall/services.py": ""})
    with pytest.raises(ConfigurationError, match="no module has that name"):
        discovery.discover()
    with pytest.raises(CommandError, match="no module has that name") as stop:
        call_command("rk_worker", "--burst")
    assert stop.value.returncode == 78


@pytest.mark.parametrize(
    ("options", "option", "module"),
    [
        ({"CELERY_APP": "stall.celry.app"}, "REDIS_KIT['QUEUES']['CELERY_APP']", "stall.celry"),
        (
            {"QUEUE_OPTIONS": {"mail": {"SINK": "stall.celry.app"}, "wrong": 5}},
            "REDIS_KIT['QUEUES']['QUEUE_OPTIONS']['mail']['SINK']",
            "stall.celry",
        ),
    ],
    ids=["app", "sink"],
)
def test_misspelt_module_of_an_app_or_a_sink_is_found_without_an_import(kit, stall, options, option, module):
    stall({"stall/celery.py": "raise RuntimeError"})
    kit.options(QUEUES=options)
    (problem,) = discovery.problems()
    assert problem.message == f"{option} is 'stall.celry.app', but no module is named {module!r}."
    assert "'stall.celery'" in problem.hint
    assert problem.message in [error.msg for error in Queues().checks()]
    kit.options(QUEUES={"CELERY_APP": "stall.celery.app", "QUEUE_OPTIONS": {"mail": {"SINK": "celery"}}})
    assert list(discovery.problems()) == []


def test_misspelt_name_in_a_module_that_is_imported_is_found(kit):
    kit.options(QUEUES={"CELERY_APP": f"{fleet.__name__}.ap"})
    (problem,) = discovery.problems()
    assert problem.message.endswith(f"is '{fleet.__name__}.ap', but the module '{fleet.__name__}' has no 'ap'.")
    assert problem.hint == "Did you mean 'app'?"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("tests.queues.support.sinks.Nope", "the module 'tests.queues.support.sinks' has no 'Nope'"),
        ("tests.queues.support.sinks.NotTaken", "is not a subclass of redis_kit.queues.Sink"),
    ],
)
def test_path_that_names_no_sink_fails_the_check(kit, monkeypatch, path, words):
    monkeypatch.delitem(sys.modules, "tests.queues.support.sinks", raising=False)
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": path}}})
    (error,) = Queues().checks()
    assert (error.id, words in error.msg) == ("redis_kit.E017", True)


def test_error_inside_a_module_of_the_option_is_raised_as_it_is(kit, stall):
    stall({"stall/services.py": "import module_of_nobody"})
    kit.options(QUEUES={"IMPORTS": ["stall.services"]})
    assert list(Queues().checks()) == []
    with pytest.raises(ModuleNotFoundError, match="module_of_nobody"):
        discovery.discover()


@pytest.mark.parametrize("name", ["stall/services.py", "", "stall..tasks", "stall tasks"])
def test_text_that_is_not_a_path_is_a_problem_of_the_settings(kit, name):
    kit.options(QUEUES={"IMPORTS": [name]})
    (problem,) = conf.problems(QueueSettings)
    assert problem.id == "E006"
    assert "dotted path" in problem.message
