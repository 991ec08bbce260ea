"""@locked: a function that runs at most once at a time."""

import asyncio
import functools
import inspect
from datetime import date
from uuid import UUID

import pytest
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.decorators import method_decorator
from django.views import View

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.locks import Lock, LockNotAcquired, locked
from redis_kit.locks.inspection import held_locks
from redis_kit.queues import task

ONE = UUID(int=1)


def held():
    return [one.name for one in held_locks().locks]


def test_function_runs_while_it_holds_the_lock(kit):
    @locked("report:{user_id}")
    def build(user_id, *, year=2026):
        """Build it."""
        return held(), year

    assert build(7) == (["report:7"], 2026)
    assert build(user_id="x", year=1) == (["report:x"], 1)
    assert held() == []
    assert build.__name__ == "build"
    assert build.__doc__ == "Build it."
    assert list(inspect.signature(build).parameters) == ["user_id", "year"]


def test_coroutine_function_runs_while_it_holds_the_lock(kit):
    @locked("report:{user_id}")
    async def build(user_id):
        return held()

    assert asyncio.iscoroutinefunction(build)
    assert asyncio.run(build(7)) == ["report:7"]
    assert held() == []


def test_method_names_its_lock_by_its_arguments(kit):
    class Report:
        @locked("{kind}:{self}:{day}:{id}")
        def build(self, kind, *, day=date(2026, 11, 20), id=ONE):
            return held()

        def __str__(self):
            return "mine"

    assert Report().build("pdf") == [f"pdf:mine:2026-11-20:{ONE}"]


def test_name_may_come_from_other_keyword_arguments(kit):
    @locked("order:{pk}")
    def view(request, **kwargs):
        return held()

    assert view(None, pk=5) == ["order:5"]
    with pytest.raises(InvalidName, match="no argument pk"):
        view(None)


def test_doubled_braces_are_braces(kit):
    @locked("a{{b}}")
    def work():
        return held()

    assert work() == ["a{b}"]


def test_busy_function_raises_who_has_it(kit):
    @locked("a")
    def work():
        raise AssertionError("must not run")

    with Lock("a"), pytest.raises(LockNotAcquired, match="is held by"):
        work()


def test_busy_function_is_skipped(kit):
    ran = []

    @locked("a", on_busy="skip")
    def work():
        ran.append(1)
        return "done"

    with Lock("a"):
        assert work() is None
    assert work() == "done"
    assert ran == [1]


@pytest.mark.parametrize("factory", [RequestFactory, AsyncRequestFactory])
def test_skipped_view_is_an_error_that_names_on_busy(kit, factory):
    class Page:
        @locked("a", on_busy="skip")
        def get(self, request):
            raise AssertionError("must not run")

    with Lock("a"), pytest.raises(InvalidValue, match=r"on_busy='skip' returns None.*on_busy=lambda request"):
        Page().get(factory().get("/"))


def test_busy_view_has_a_note_that_names_on_busy(kit):
    @locked("a")
    async def view(request):
        raise AssertionError("must not run")

    with Lock("a"), pytest.raises(LockNotAcquired, match="is held by") as caught:
        asyncio.run(view(RequestFactory().get("/")))
    assert "on_busy=lambda request" in caught.value.__notes__[-1]
    with Lock("a"), pytest.raises(LockNotAcquired) as caught:
        asyncio.run(view(None))
    assert "on_busy=lambda" not in str(getattr(caught.value, "__notes__", ""))


def test_busy_function_waits(kit, waiting):
    @locked("a", on_busy="wait")
    def work():
        return done.append(1)

    done = []
    lease = Lock("a").acquire()
    thread = waiting(work)
    assert not done
    lease.release()
    thread.join(10)
    assert done == [1]


def test_busy_function_waits_for_a_while(kit):
    @locked("a", on_busy="wait", blocking_timeout=0.05)
    def work():
        raise AssertionError("must not run")

    with Lock("a"), pytest.raises(LockNotAcquired):
        work()


def test_busy_view_answers_what_it_is_told(kit):
    @locked("export:{pk}", on_busy=lambda request, pk: HttpResponse(f"{pk} is busy", status=409))
    def export(request, pk):
        return HttpResponse("done")

    request = RequestFactory().get("/")
    with Lock("export:3"):
        assert export(request, pk=3).status_code == 409
    assert export(request, pk=3).content == b"done"


def test_busy_async_view_may_await_its_answer(kit):
    async def busy(request):
        return HttpResponse(status=409)

    @locked("export", on_busy=busy)
    async def export(request):
        return HttpResponse("done")

    async def main():
        request = AsyncRequestFactory().get("/")
        async with Lock("export"):
            assert (await export(request)).status_code == 409
        assert (await export(request)).content == b"done"

    asyncio.run(main())


def test_class_based_view_takes_it_through_method_decorator(kit):
    @method_decorator(locked("view:{pk}", on_busy=lambda *args, **kwargs: HttpResponse(status=409)), name="dispatch")
    class Page(View):
        def get(self, request, pk):
            return HttpResponse(",".join(held()))

    request = RequestFactory().get("/")
    assert Page.as_view()(request, pk=1).content == b"view:1"
    with Lock("view:1"):
        assert Page.as_view()(request, pk=1).status_code == 409


class AsyncPage(View):
    """A view whose dispatch() is sync, and returns a coroutine."""

    async def get(self, request, pk):
        return HttpResponse(",".join(held()))


class Callable:
    """An object whose call is a coroutine."""

    async def __call__(self, request, pk):
        return HttpResponse(",".join(held()))


@pytest.mark.parametrize(
    "decorated",
    [
        lambda decorator: method_decorator(decorator, name="dispatch")(type("Page", (AsyncPage,), {})).as_view(),
        lambda decorator: decorator(AsyncPage.as_view()),
        lambda decorator: decorator(Callable()),
        lambda decorator: decorator(functools.partial(Callable.__call__, None)),
    ],
    ids=["dispatch", "view", "object", "partial"],
)
def test_async_view_of_any_kind_runs_while_it_holds_the_lock(kit, decorated):
    view = decorated(locked("view:{pk}"))
    assert asyncio.run(view(AsyncRequestFactory().get("/"), pk=1)).content == b"view:1"
    assert held() == []


@pytest.mark.filterwarnings("error::RuntimeWarning")  # a coroutine that nobody awaits
def test_sync_function_that_returns_a_coroutine_is_an_error(kit):
    work = locked("a")(lambda: asyncio.sleep(0))
    with pytest.raises(TypeError, match="would not hold the lock while"):
        work()
    assert held() == []


def test_lock_is_given_back_after_an_error(kit):
    @locked("a")
    def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert held() == []


def test_error_about_the_lock_from_inside_is_not_taken_for_ones_own(kit):
    @locked("outer", on_busy="skip")
    def work():
        with Lock("inner", blocking=False):
            pass

    with Lock("inner"), pytest.raises(LockNotAcquired, match="inner"):
        work()


@pytest.mark.parametrize(
    "name", ["{x.__class__}", "{x[0]}", "{x:>9}", "{x!r}", "{}", "{0}", "{", "}", "{y}", "", None, b"a", "a" * 513]
)
def test_wrong_name_is_refused_when_it_decorates(name):
    with pytest.raises(InvalidName):

        @locked(name)
        def work(x):
            pass


def test_argument_without_a_text_of_its_own_is_refused(kit):
    @locked("a:{x}")
    def work(x):
        pass

    with pytest.raises(InvalidName, match="has no text"):
        work(object())


def test_wrong_arguments_of_a_call_are_a_type_error(kit):
    @locked("a:{x}")
    def work(x):
        pass

    with pytest.raises(TypeError, match="missing a required argument"):
        work()


def generator():
    yield


async def async_generator():
    yield


@pytest.mark.parametrize("function", [generator, async_generator, View, staticmethod(len), "text"])
def test_what_is_no_plain_function_is_refused(function):
    with pytest.raises(TypeError, match="@locked"):
        locked("a")(function)


@task
def build_report(day):
    """Build it."""


def test_task_is_refused_with_the_right_order():
    with pytest.raises(TypeError, match="@locked takes a function, not a task; put @locked below @task"):
        locked("report:{day}")(build_report)


def test_wrong_options_are_refused_when_it_decorates():
    with pytest.raises(InvalidValue, match="Did you mean 'skip'"):
        locked("a", on_busy="skipp")
    with pytest.raises(InvalidValue, match="timeout"):
        locked("a", timeout=0)
