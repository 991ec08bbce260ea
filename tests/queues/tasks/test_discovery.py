"""The modules that workers import, and the warning about tasks in other modules."""

import sys
from types import SimpleNamespace

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
LAZY = "def later():\n    from stall import services\n"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from stall import services\n"
DYNAMIC = "import pkgutil\nfor info in pkgutil.iter_modules(__path__):\n    __import__(f'{__name__}.{info.name}')\n"


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
    for name in [name for name in sys.modules if name.partition(".")[0] in ("stall", "stall_urls")]:
        del sys.modules[name]
    for name in [name for name in registry._tasks if name.startswith("stall.")]:
        del registry._tasks[name]
    discovery._loaded_at_start.discard("stall.services")


def imported(module):
    __import__(module)
    return sys.modules[module]


@pytest.mark.parametrize(
    ("files", "module", "warned"),
    [
        ({"stall/services.py": TASK}, "stall.services", True),
        ({"stall/services.py": TASK, "stall/tasks.py": LAZY}, "stall.services", True),
        ({"stall/services.py": TASK, "stall/tasks.py": TYPES}, "stall.services", True),
        ({"stall/services.py": TASK, "stall/tasks.py": "from stall import services"}, "stall.services", False),
        ({"stall/services.py": TASK, "stall/tasks.py": "from .services import send"}, "stall.services", False),
        (
            {
                "stall/services.py": TASK,
                "stall/tasks.py": "from . import steps",
                "stall/steps.py": "from . import services",
            },
            "stall.services",
            False,
        ),
        ({"stall/tasks.py": TASK}, "stall.tasks", False),
        ({"stall/tasks/__init__.py": "", "stall/tasks/mail.py": TASK}, "stall.tasks.mail", True),
        ({"stall/tasks/__init__.py": "from . import mail", "stall/tasks/mail.py": TASK}, "stall.tasks.mail", False),
        ({"stall/tasks/__init__.py": DYNAMIC, "stall/tasks/mail.py": TASK}, "stall.tasks.mail", False),
        (
            {"stall/tasks.py": "import stall.damaged", "stall/damaged.py": "(", "stall/services.py": TASK},
            "stall.services",
            0,
        ),
        ({"stall/test_orders.py": TASK}, "stall.test_orders", False),
    ],
)
def test_first_call_of_a_task_that_no_worker_imports_is_warned_of(kit, stall, caplog, files, module, warned):
    stall(files)
    task = imported(module).send
    for _ in range(3):
        task.enqueue()
    texts = [record.getMessage() for record in caplog.records if "No worker knows" in record.getMessage()]
    assert len(texts) == warned
    if warned:
        assert f"{module}.send" in texts[0]
        assert f"{{'QUEUES': {{'IMPORTS': ['{module}']}}}}" in texts[0]


def test_task_of_the_shell_is_to_be_defined_in_a_module(caplog):
    module = "django.core.management.commands.shell"
    discovery.looked_at.discard(module)
    discovery.warn_unless_imported(SimpleNamespace(func=SimpleNamespace(__module__=module), module_path=f"{module}.f"))
    (message,) = caplog.messages
    assert message.startswith(f"No worker can run the task {module}.f, as it was defined in the shell. Define it in")
    assert "IMPORTS" not in recall.remedy_for(f"{module}.f")


@pytest.mark.parametrize("module", ["tests.app.tasks", __name__])
def test_worker_that_imports_the_module_of_a_new_task_is_to_restart(module):
    text = "restart this worker with the new code (or use --reload), or keep the old name of the task"
    assert recall.remedy_for(f"{module}.new") == text
    assert recall.remedy_for("stall.services.new").startswith("add 'stall.services' to REDIS_KIT['QUEUES']['IMPORTS']")


def test_modules_of_the_option_and_what_urls_import_are_not_warned_of(kit, stall, caplog, settings):
    urls = "from django.urls import include\nurlpatterns = [include('stall.urls')]"
    stall(
        {
            "stall/services.py": TASK,
            "stall/views.py": TASK,
            "stall_urls.py": urls,
            "stall/urls.py": "from stall import views",
        }
    )
    kit.options(QUEUES={"IMPORTS": ["stall.services"]})
    settings.ROOT_URLCONF = "stall_urls"
    imported("stall.services").send.enqueue()
    imported("stall.views").send.enqueue()
    assert "No worker knows" not in caplog.text


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
    (problem,) = discovery.problems_of_paths()
    assert problem.message == f"{option} is 'stall.celry.app', but no module is named {module!r}."
    assert "'stall.celery'" in problem.hint
    assert problem.message in [error.msg for error in Queues().checks()]
    kit.options(QUEUES={"CELERY_APP": "stall.celery.app", "QUEUE_OPTIONS": {"mail": {"SINK": "celery"}}})
    assert list(discovery.problems_of_paths()) == []


def test_misspelt_name_in_a_module_that_is_imported_is_found(kit):
    kit.options(QUEUES={"CELERY_APP": f"{fleet.__name__}.ap"})
    (problem,) = discovery.problems_of_paths()
    assert problem.message.endswith(f"is '{fleet.__name__}.ap', but the module '{fleet.__name__}' has no 'ap'.")
    assert problem.hint == "Did you mean 'app'?"


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


def test_module_that_django_imports_at_its_start_is_not_warned_of(kit, stall, caplog, monkeypatch):
    stall({"stall/services.py": TASK})
    monkeypatch.setattr(discovery.apps, "ready", False)
    task = imported("stall.services").send
    monkeypatch.undo()
    task.enqueue()
    assert "No worker knows" not in caplog.text
