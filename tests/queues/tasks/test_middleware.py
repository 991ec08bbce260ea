"""Middleware of a project: what it sees of a call and of an attempt, and what it must not do."""

import re

import pytest
from django.core.management import CommandError, call_command

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import GiveUp, InvalidMiddleware, Queue, chain, previous
from redis_kit.queues.component import Queues
from redis_kit.queues.engine import message
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.testing.jobs import drain
from tests.queues.support import middleware as project
from tests.queues.support.middleware import afail, atell, fail, seen, tell, tenant

HERE = "tests.queues.support.middleware"


@pytest.fixture
def use(kit):
    """Set the middleware of the project, the outermost first."""
    seen.clear()
    return lambda *names: kit.options(QUEUES={"MIDDLEWARE": [f"{HERE}.{name}" for name in names]})


def work():
    """Run what is ready in a worker, with its event loop."""
    assert WorkerProcess(Options(("default",), threads=1, burst=True)).run() == 0


@pytest.fixture(params=[tell, atell], ids=["function", "coroutine"])
def told(request):
    return request.param


def test_header_of_a_call_is_there_when_its_job_runs(use, told):
    use("Tenant")
    tenant.set("acme")
    result = told.enqueue(1)
    tenant.set("none")
    work()
    result.refresh()
    assert result.return_value == ["acme", 1]
    assert seen == [f"in {told.name}[1]", "out"]


def test_first_of_the_list_is_the_outermost_on_both_ways(use, told):
    use("Tenant", "doubled")
    result = told.enqueue(1)
    assert result.args == [1]
    work()
    result.refresh()
    assert result.return_value == ["none", 4]
    assert seen == [f"in {told.name}[2]", "out"]


@pytest.mark.parametrize("order", [("OnLoop", "Tenant"), ("Tenant", "OnLoop"), ("OnLoop", "unused")])
def test_middleware_of_either_kind_is_adapted_to_tasks_of_either_kind(use, told, order):
    use(*order)
    result = told.enqueue(1)
    work()
    result.refresh()
    assert result.return_value == ["none", 1]
    assert "loop" in seen


@pytest.mark.parametrize("names", [["german"], ["OnLoop", "german"], ["german", "OnLoop"]])
@pytest.mark.parametrize("task", [project.language, project.alanguage], ids=["function", "coroutine"])
def test_middleware_of_both_kinds_runs_where_the_task_does(use, task, names):
    use(*names)
    result = task.enqueue()
    work()
    result.refresh()
    assert result.return_value == "de"


def test_many_calls_and_steps_of_workflows_pass_it_too(use):
    use("Tenant")
    tell.enqueue_many([(1,), (2,)])
    tenant.set("acme")
    chain(tell.step("a"), tell.step(previous)).enqueue()
    tenant.set("none")
    headers = [message.loads(job.body).headers for job in Queue("default").peek()]
    assert headers == [{"tenant": "none"}, {"tenant": "none"}, {"tenant": "acme"}]
    assert drain() == 4
    assert "in tell[['acme', 'a']]" in seen


def test_call_without_headers_is_stored_as_before(use):
    use("doubled")
    tell.enqueue(1)
    (job,) = Queue("default").peek()
    assert b"headers" not in job.body


@pytest.mark.parametrize("task", [fail, afail])
def test_error_that_middleware_swallows_fails_the_attempt_all_the_same(use, task):
    use("silent")
    result = task.enqueue("x")
    work()
    result.refresh()
    assert result.errors[0].exception_class_path == "builtins.ValueError"
    assert f"The middleware '{HERE}.silent' caught this error" in result.errors[0].traceback


@pytest.mark.parametrize(("name", "words"), [("forgetful", "returned None in place of"), ("absent", "without a call")])
def test_middleware_that_loses_the_task_or_its_value_is_named(use, told, name, words):
    use("unused", name)
    result = told.enqueue(1)
    work()
    result.refresh()
    assert result.errors[0].exception_class_path == "redis_kit.queues.errors.InvalidMiddleware"
    assert words in result.errors[0].traceback
    assert f"'{HERE}.{name}'" in result.errors[0].traceback


def test_value_that_middleware_loses_is_not_worth_another_attempt(use):
    use("forgetful")
    project.answer.enqueue()
    assert drain() == 1
    (dead,) = Queue("default").peek(state="dead")
    assert dead.reason.startswith("InvalidMiddleware: ")


def test_middleware_may_end_an_attempt_with_an_error_of_its_own(use, told):
    use("refusing")
    told.enqueue(1)
    work()
    (dead,) = Queue("default").peek(state="dead")
    assert dead.reason == f"{GiveUp.__name__}: not here"


def test_call_must_keep_the_number_of_its_arguments(use):
    use("fewer")
    with pytest.raises(InvalidMiddleware, match="changed the number or the names of the arguments"):
        tell.enqueue(1)
    assert not sum(Queue("default").counts())


def test_headers_that_are_no_dict_are_an_error_of_the_call(use):
    use("Headless")
    with pytest.raises(InvalidMiddleware, match="put None in place of headers"):
        tell.enqueue(1)


WRONG = {
    "Tennant": "Did you mean 'Tenant'",
    "number": "not a class or function",
    "Incapable": "are both False",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_path_is_an_error_of_the_call_and_of_the_check(use, name):
    use(name)
    with pytest.raises(ConfigurationError, match=WRONG[name]):
        tell.enqueue(1)
    (problem,) = Queues().checks()
    assert (problem.id, WRONG[name] in problem.msg) == ("redis_kit.E017", True)


UNFIT = {
    "nothing": "returned None. It must return a callable that takes an attempt.",
    "Broken": "can't be called with call_next: ValueError: no address.",
    "bare": "can't be called with call_next: TypeError: bare() takes 0 positional",
    "Coroutine": "is asynchronous. Set async_capable = True",
    "Misspelt": "has proces_enqueue(), which nothing calls. Did you mean process_enqueue()?",
    "LateHeaders": "has an asynchronous process_enqueue(). Write def",
}


@pytest.mark.parametrize("name", UNFIT)
def test_middleware_that_can_not_be_made_fails_calls_and_stops_the_worker(use, name):
    use(name)
    words = re.escape(f"{HERE}.{name} in REDIS_KIT['QUEUES']['MIDDLEWARE'] {UNFIT[name]}")
    with pytest.raises(ConfigurationError, match=words):
        tell.enqueue(1)
    with pytest.raises(CommandError, match=words) as stop:
        call_command("rk_worker", "--burst")
    assert stop.value.returncode == 78
    (problem,) = Queues().checks()
    assert (problem.id, bool(re.search(words, problem.msg))) == ("redis_kit.E017", True)


def test_module_that_raises_is_named_with_its_setting(kit, tmp_path, monkeypatch):
    (tmp_path / "raising_middleware.py").write_text("raise RuntimeError('no address')")
    monkeypatch.syspath_prepend(tmp_path)
    kit.options(QUEUES={"MIDDLEWARE": ["raising_middleware.Tenant"]})
    words = "holds 'raising_middleware.Tenant', whose module can't be imported: RuntimeError: no address."
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        tell.enqueue(1)
    (problem,) = Queues().checks()
    assert f"REDIS_KIT['QUEUES']['MIDDLEWARE'] {words}" in problem.msg


def test_path_without_a_module_is_a_problem_of_the_settings(kit):
    kit.options(QUEUES={"MIDDLEWARE": ["Tenant"]})
    with pytest.raises(ConfigurationError, match="not the dotted path of a middleware"):
        tell.enqueue(1)
    assert list(Queues().checks()) == []  # the check of the settings says so


def test_middleware_passes_nothing_on_outside_of_a_worker(use):
    use("eager")
    with pytest.raises(InvalidMiddleware, match="in a worker only"):
        tell.enqueue(1)
