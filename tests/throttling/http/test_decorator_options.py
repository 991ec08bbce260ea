"""Arguments of the decorator other than rates and key: cost, exemptions, shadow mode and bans."""

import asyncio

import pytest
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.decorators import method_decorator
from django.views import View

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import task
from redis_kit.throttling import Ban, Throttle, throttle
from redis_kit.throttling.throttles import registered


@pytest.fixture(params=["sync", "async"])
def get(request):
    """Decorate a view that answers with what is left, and return a function that gets it."""
    if request.param == "async":

        def decorated(*decorators):
            async def view(request):
                return HttpResponse(f"{request.throttle.remaining}")

            for decorator in reversed(decorators):
                view = decorator(view)
            return lambda path="/", **headers: runner.run(view(AsyncRequestFactory().get(path, headers=headers)))

        with asyncio.Runner() as runner:
            yield decorated
        return

    def decorated(*decorators):
        def view(request):
            return HttpResponse(f"{request.throttle.remaining}")

        for decorator in reversed(decorators):
            view = decorator(view)
        return lambda path="/", **headers: view(RequestFactory().get(path, headers=headers))

    yield decorated


def later(function):
    """Return a function as a coroutine function."""

    async def found(*args):
        return function(*args)

    return found


def test_cost_may_be_a_number(kit, get):
    view = get(throttle("10/h", key="ip", name="view", cost=4))
    assert [view().content for _ in range(2)] == [b"6", b"2"]
    assert view().status_code == 429


def test_cost_may_follow_from_the_request(kit, get):
    view = get(throttle("10/h", key="ip", name="view", cost=lambda request: int(request.GET["rows"])))
    assert view("/?rows=7").content == b"3"
    assert view("/?rows=4").status_code == 429
    assert view("/?rows=3").content == b"0"


def test_cost_that_could_never_pass_is_an_error_where_the_view_is_defined():
    with pytest.raises(InvalidValue, match="from 1 to 5"):
        throttle("5/m", name="view", cost=6)(lambda request: HttpResponse())


def test_cost_of_a_request_that_could_never_pass_is_refused(kit, get):
    view = get(throttle("5/m", key="ip", name="export", cost=lambda request: int(request.GET["rows"])))
    response = view("/?rows=6")
    assert (response.status_code, "Retry-After" in response) == (429, False)
    assert [view(f"/?rows={rows}").content for rows in (0, 5)] == [b"5", b"0"]


def test_exempt_requests_are_not_counted_and_get_no_fields(kit, get):
    view = get(throttle("1/h", key="ip", name="view", exempt=lambda request: "X-Monitor" in request.headers))
    for _ in range(3):
        response = view(**{"X-Monitor": "yes"})
        assert (response.status_code, response.content, "RateLimit" in response) == (200, b"1", False)
    assert kit.keys() == []
    assert [view().status_code for _ in range(2)] == [200, 429]


def test_exempt_of_one_throttle_leaves_the_others(kit, get):
    monitored = throttle("1/h", key="ip", name="outer", exempt=lambda request: True)
    view = get(monitored, throttle("2/h", key="ip", name="inner"))
    assert [view().status_code for _ in range(3)] == [200, 200, 429]
    assert view()["RateLimit-Policy"] == '"inner";q=2;w=3600'


def test_shadow_refuses_nothing_and_tells_nothing(kit, get):
    view = get(throttle("1/h", key="ip", name="view", shadow=True))
    responses = [view() for _ in range(3)]
    assert [response.status_code for response in responses] == [200] * 3
    assert not any("RateLimit" in response for response in responses)


def test_identity_that_is_refused_too_often_is_banned(kit, get):
    kit.options(THROTTLING={"REMEMBER": 0})
    view = get(throttle("1/h", key="ip", name="view", ban=Ban(after=2, within=60, seconds=9000)))
    assert [view().status_code for _ in range(3)] == [200, 429, 429]
    banned = view()
    assert banned.status_code == 429
    assert int(banned["Retry-After"]) > 8900
    assert banned["RateLimit"].startswith('"view";r=0;t=')


def test_functions_of_async_views_may_be_coroutine_functions(kit):
    async def view(request):
        return HttpResponse(status=401)

    limited = throttle(
        "10/h",
        key=later(lambda request: "joe"),
        cost=later(lambda request: 4),
        exempt=later(lambda request: "exempt" in request.GET),
        count_when=later(lambda request, response: response.status_code == 401),
    )(view)
    factory = AsyncRequestFactory()

    async def several():
        responses = [await limited(factory.get(path)) for path in ("/?exempt", "/", "/", "/", "/?exempt")]
        return [response.status_code for response in responses]

    assert asyncio.run(several()) == [401, 401, 401, 429, 401]


@pytest.mark.parametrize("option", ["cost", "exempt", "count_when"])
def test_coroutine_function_before_a_sync_view_is_an_error(kit, option):
    view = throttle("5/m", key="ip", **{option: later(lambda *args: 1)})(lambda request: HttpResponse())
    with pytest.raises(TypeError, match="coroutine function"):
        view(RequestFactory().get("/"))


@pytest.mark.parametrize("option", ["cost", "exempt", "count_when"])
def test_failing_function_is_named_by_its_throttle(kit, get, option):
    def broken(*args):
        raise KeyError("tenant")

    with pytest.raises(KeyError, match="tenant") as caught:
        get(throttle("5/m", key="ip", name="api", **{option: broken}))()
    assert "'api'" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("argument", "value"),
    [("count_when", 401), ("exempt", "app.views.exempt"), ("cost", []), ("cost", "5"), ("cost", True)],
)
def test_value_that_is_no_function_is_refused_before_there_is_a_view(argument, value):
    with pytest.raises(InvalidValue, match=f"^{argument} must be .*callable"):
        throttle("5/m", **{argument: value})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", "other"),
        ("strategy", "fixed_window"),
        ("on_failure", "closed"),
        ("shadow", True),
        ("ban", Ban(1, 60, 60)),
        ("using", "other"),
    ],
)
def test_what_a_shared_throttle_says_itself_is_refused_beside_it(argument, value):
    with pytest.raises(InvalidValue, match=f"^{argument} belongs to the Throttle"):
        throttle(Throttle("shared", "5/m"), **{argument: value})


def test_class_is_refused_with_what_to_use():
    with pytest.raises(TypeError, match=r"method_decorator\(throttle\(...\), name='dispatch'\), or ThrottleMixin"):
        throttle("5/m")(View)


@task
def fetch(page):
    """Fetch it."""


def test_task_is_refused_with_what_to_use():
    with pytest.raises(TypeError, match=r"decorates views, not tasks: call acquire\(\) of a Throttle in the task"):
        throttle("5/m")(fetch)


def test_throttle_with_a_name_is_known_before_the_first_request():
    method_decorator(throttle("5/m", name="early"), name="dispatch")(type("Early", (View,), {}))
    assert "early" in {limit.name for limit in registered.values()}
