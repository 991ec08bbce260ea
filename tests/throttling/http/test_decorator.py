"""The decorator on every kind of view."""

import asyncio
import functools
import inspect

import pytest
from asgiref.sync import iscoroutinefunction
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.throttling import InvalidRate, Throttle, throttle
from redis_kit.throttling.throttles import registered


def answer(request, *args, **kwargs):
    return HttpResponse(f"{request.throttle.remaining} {args} {kwargs}")


async def async_answer(request, *args, **kwargs):
    return HttpResponse(f"{request.throttle.remaining} {args} {kwargs}")


class Page(View):
    def get(self, request, *args, **kwargs):
        return answer(request, *args, **kwargs)


class AsyncPage(View):
    async def get(self, request, *args, **kwargs):
        return answer(request, *args, **kwargs)


@method_decorator(throttle("2/h", key="ip"), name="dispatch")
class Dispatched(Page):
    pass


@method_decorator(throttle("2/h", key="ip"), name="dispatch")
class AsyncDispatched(AsyncPage):
    pass


class Method(View):
    @method_decorator([never_cache, throttle("2/h", key="ip")])
    def get(self, request, *args, **kwargs):
        return answer(request, *args, **kwargs)


class AsyncMethod(View):
    @method_decorator(throttle("2/h", key="ip"))
    async def get(self, request, *args, **kwargs):
        return answer(request, *args, **kwargs)


class Sibling(Method):
    pass


class Callable:
    def __call__(self, request, *args, **kwargs):
        return answer(request, *args, **kwargs)


LIMITED = throttle("2/h", key="ip")
VIEWS = {
    "function": LIMITED(answer),
    "async function": LIMITED(async_answer),
    "partial": LIMITED(functools.partial(answer)),
    "async partial": LIMITED(functools.partial(async_answer)),
    "object": LIMITED(Callable()),
    "class": LIMITED(Page.as_view()),
    "async class": LIMITED(AsyncPage.as_view()),
    "dispatch": Dispatched.as_view(),
    "async dispatch": AsyncDispatched.as_view(),
    "method": Method.as_view(),
    "async method": AsyncMethod.as_view(),
}


def call(view, request, *args, **kwargs):
    """Call a view as Django's handlers do."""
    if iscoroutinefunction(view):
        return asyncio.run(view(request, *args, **kwargs))
    response = view(request, *args, **kwargs)
    return asyncio.run(_awaited(response)) if inspect.isawaitable(response) else response


async def _awaited(response):
    return await response


@pytest.mark.parametrize("kind", VIEWS)
def test_third_call_of_two_is_refused(kit, kind):
    factory = AsyncRequestFactory() if "async" in kind else RequestFactory()
    responses = [call(VIEWS[kind], factory.get("/"), 5, slug="x") for _ in range(3)]
    assert [one.status_code for one in responses] == [200, 200, 429]
    assert [one.content for one in responses[:2]] == [b"1 (5,) {'slug': 'x'}", b"0 (5,) {'slug': 'x'}"]
    assert all("RateLimit" in one for one in responses)
    assert call(VIEWS[kind], factory.get("/", REMOTE_ADDR="10.0.0.9")).status_code == 200 or "async" in kind


@pytest.mark.parametrize("kind", VIEWS)
def test_decorated_view_stays_of_its_kind(kind):
    asynchronous = kind.startswith("async") and "partial" not in kind
    assert iscoroutinefunction(VIEWS[kind]) == asynchronous or kind == "async partial"


@pytest.mark.parametrize("kind", ["async function", "async class", "async dispatch", "async method"])
def test_async_view_waits_for_the_server_without_blocking_its_loop(kit, kind, monkeypatch):
    monkeypatch.setattr(Throttle, "hit", None)
    assert call(VIEWS[kind], AsyncRequestFactory().get("/")).status_code == 200


def test_view_keeps_its_name_and_attributes():
    @throttle("2/h")
    def view(request):
        """A page."""

    view.marked = True
    assert (view.__name__, view.__doc__) == ("view", "A page.")
    assert throttle("2/h")(view).marked


def test_only_the_methods_given_count(kit):
    for methods in (("POST",), ["POST"], {"POST"}, "POST"):
        view = throttle("1/h", key="ip", methods=methods, name=f"view {methods}")(lambda request: HttpResponse())
        assert [view(RequestFactory().get("/")).status_code for _ in range(3)] == [200] * 3
        assert [view(RequestFactory().post("/")).status_code for _ in range(2)] == [200, 429]
        assert "RateLimit" not in view(RequestFactory().get("/"))


@pytest.mark.parametrize("methods", ["GET", ("get", "POST")])
def test_head_counts_as_get(kit, methods):
    @method_decorator(throttle("1/h", key="ip", methods=methods, name="page"), name="dispatch")
    class Page(View):
        def get(self, request):
            return HttpResponse()

    requests = RequestFactory()
    assert [Page.as_view()(request("/")).status_code for request in (requests.get, requests.head)] == [200, 429]


def test_head_alone_leaves_out_get(kit):
    view = throttle("1/h", key="ip", methods="HEAD", name="page")(lambda request: HttpResponse())
    assert [view(RequestFactory().get("/")).status_code for _ in range(2)] == [200, 200]
    assert [view(RequestFactory().head("/")).status_code for _ in range(2)] == [200, 429]


def test_each_view_and_each_class_has_a_throttle_of_its_own(kit):
    for view in (Dispatched.as_view(), Method.as_view(), Sibling.as_view()):
        assert call(view, RequestFactory().get("/")).content.startswith(b"1 ")


def test_throttle_of_a_view_is_named_after_it_and_known_to_the_dashboard(kit):
    throttle("2/h", key="ip")(answer)
    throttle("2/h", key="ip", name="named")(answer)
    own = type("Own", (Method,), {})  # has its throttle from the first request on
    call(own.as_view(), RequestFactory().get("/"))
    names = {limit.name for limit in registered.values()}
    views = ("answer", "async_answer", "Callable", "Page", "AsyncPage", "Own.get")
    assert {"named", *(f"{__name__}.{view}" for view in views)} <= names
    assert not any("django.utils.decorators" in name for name in names)


LABELS = {
    "dispatch": "Dispatched",
    "async dispatch": "AsyncDispatched",
    "method": "Method.get",
    "async method": "AsyncMethod.get",
}


@pytest.mark.parametrize(("kind", "label"), LABELS.items())
def test_throttle_of_a_method_is_named_after_the_view_class(kit, kind, label):
    factory = AsyncRequestFactory() if "async" in kind else RequestFactory()
    request = factory.get("/")
    assert call(VIEWS[kind], request)["RateLimit-Policy"] == f'"{label}";q=2;w=3600'
    assert [throttle.name for throttle, _ in request.throttles] == [f"{__name__}.{label}"]


def test_throttle_can_be_shared_by_views_and_code(kit):
    limit = Throttle("login", "2/h")
    first, second = throttle(limit, key="ip")(answer), throttle(limit, key="ip")(answer)
    request = RequestFactory().get("/")
    assert first(request).status_code == second(request).status_code == 200
    assert first(request).status_code == 429
    assert not limit.hit(f"ip:{request.META['REMOTE_ADDR']}")


def test_no_rate_is_no_limit_and_no_header(kit):
    view = throttle(None, key="ip")(answer)
    response = view(RequestFactory().get("/"))
    assert response.status_code == 200
    assert "RateLimit" not in response


def test_not_enabled_is_no_limit_and_no_header(kit):
    kit.options(THROTTLING={"ENABLED": False})
    responses = [VIEWS["function"](RequestFactory().get("/")) for _ in range(5)]
    assert {response.status_code for response in responses} == {200}
    assert "RateLimit" not in responses[0]


def test_two_throttles_of_a_view_are_both_told(kit):
    view = throttle("9/h", key="ip", name="outer")(throttle("1/m", key="ip", name="inner")(answer))
    first, second = view(RequestFactory().get("/")), view(RequestFactory().get("/"))
    assert first["RateLimit-Policy"] == '"outer";q=9;w=3600, "inner";q=1;w=60'
    assert first["RateLimit"] == '"outer";r=8;t=400, "inner";r=0;t=60'
    assert second.status_code == 429
    assert second["RateLimit"].startswith('"outer";r=8;t=400, "inner";r=0;t=')


def test_wrong_arguments_fail_where_the_view_is_defined():
    with pytest.raises(InvalidRate):
        throttle("5/x")
    with pytest.raises(InvalidValue, match="user_or_ip"):
        throttle("5/m", key="users")
    with pytest.raises(InvalidValue, match="on_failure"):
        throttle("5/m", on_failure="no")(answer)


def test_method_without_method_decorator_is_an_error(kit):
    class Wrong(View):
        @throttle("5/m", key="ip")
        def get(self, request):
            return HttpResponse()

    with pytest.raises(TypeError, match="method_decorator"):
        Wrong.as_view()(RequestFactory().get("/"))


def test_failing_key_is_named_by_its_throttle(kit):
    def broken(request):
        raise KeyError("tenant")

    async def view(request):
        return HttpResponse()

    for one in (throttle("5/m", key=broken, name="api")(answer), throttle("5/m", key=broken, name="api")(view)):
        with pytest.raises(KeyError, match="tenant") as caught:
            call(one, RequestFactory().get("/"))
        assert "'api'" in caught.value.__notes__[0]


def test_key_that_finds_nobody_is_an_error(kit):
    with pytest.raises(InvalidName, match="identity"):
        throttle("5/m", key=lambda request: None)(answer)(RequestFactory().get("/"))


@pytest.mark.parametrize("methods", ["PSOT", ("POST", "GTE"), (), 5])
def test_methods_that_no_request_has_are_refused_at_decoration(methods):
    with pytest.raises(InvalidValue, match="methods"):
        throttle("1/m", methods=methods)


def test_methods_may_be_written_small(kit):
    @throttle("1/h", key="ip", methods=("post",))
    def view(request):
        return HttpResponse("yes")

    assert [view(RequestFactory().post("/")).status_code for _ in range(2)] == [200, 429]
