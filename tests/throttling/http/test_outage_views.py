"""Throttles and views while the server is unavailable, frozen, full or refuses to write: by policy, and in time."""

import asyncio
import contextlib
import itertools
import statistics
import time

import pytest
from django.contrib.auth import aauthenticate, authenticate
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path

from redis_kit.throttling import Throttle, compat, hit_all, throttle
from redis_kit.throttling.checks import LOGINS
from tests.fixtures.kit import Kit
from tests.fixtures.servers import Server, free_port, wait_for

pytestmark = pytest.mark.alone(25)

# Seconds: a call without a time limit waits for a frozen server for ever, a call that waits for a reply takes 0.25.
ANSWERED, OPEN = 5.0, 0.2
ROUNDS = 20


def plain(request):
    return HttpResponse("fresh")


@throttle("2/h", key="ip", name="outage")
def view(request):
    return HttpResponse("fresh")


@throttle("2/h", key="ip", name="async-outage")
async def async_view(request):
    return HttpResponse("fresh")


@throttle("2/h", key="ip", name="outer")
@throttle("5/h", key="header:x-api-key", name="inner")
def twice(request):
    return HttpResponse("fresh")


@throttle("2/h", key="ip", name="failing", count_when=lambda request, response: response.status_code == 200)
def settled(request):
    return HttpResponse("fresh")


urlpatterns = [path(f"{one.__name__}/", one) for one in (plain, view, async_view, twice, settled)]
PATHS = ["/view/", "/async_view/", "/twice/", "/settled/"]


@contextlib.contextmanager
def stopped(server, folder):
    server.stop()
    yield
    server.start()


@contextlib.contextmanager
def frozen(server, folder):
    server.freeze()
    yield
    server.thaw()


def configured(**options):
    @contextlib.contextmanager
    def trouble(server, folder):
        with server.client() as client:
            before = {name: client.config_get(name)[name] for name in options}
            for name, value in options.items():
                client.config_set(name, value)
            yield
            for name, value in before.items():
                client.config_set(name, value)

    return trouble


@contextlib.contextmanager
def demoted(server, folder):
    with server.client() as client:
        client.replicaof("127.0.0.1", free_port())
        yield
        client.replicaof("NO", "ONE")


@contextlib.contextmanager
def misconfigured(server, folder):
    """Have the server fail to save, upon which it refuses to write."""
    gone = folder / "gone"
    gone.mkdir()
    with configured(dir=str(gone), save="3600 1")(server, folder), server.client() as client:
        gone.rmdir()
        client.bgsave()
        wait_for(lambda: not client.info("persistence")["rdb_bgsave_in_progress"])
        assert client.info("persistence")["rdb_last_bgsave_status"] == "err"
        yield


@contextlib.contextmanager
def locked(server, folder):
    with server.client() as client:
        client.config_set("requirepass", "secret")
        client.auth("secret")
        client.execute_command("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")  # connections that stand need none
        yield
        client.config_set("requirepass", "")


TROUBLES = {
    "stopped": stopped,
    "frozen": frozen,
    "full": configured(maxmemory=1),
    "without replicas": configured(**{"min-replicas-to-write": 1}),
    "demoted": demoted,
    "misconfigured": misconfigured,
    "with a password": locked,
}


@pytest.fixture(scope="module")
def server():
    server = Server(tcp=True, extra_args=("--enable-protected-configs", "local"))
    yield server
    server.stop()


@pytest.fixture(params=TROUBLES)
def broken(request, server, settings, tmp_path):
    """The kit on a server that gets into trouble after it was used, for the length of a test."""
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    with contextlib.closing(Kit(server, settings, patient=False)) as kit:
        wait_for(lambda: Throttle("before", "500/h").hit("joe").reason == "")  # a busy machine may not answer in time
        with TROUBLES[request.param](server, tmp_path):
            yield kit


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Return a function that asks for a page through Django's handler of either kind."""
    if request.param == "sync":
        yield Client().get
        return
    client = AsyncClient()
    with asyncio.Runner() as runner:

        def asked(url):
            return runner.run(client.get(url))

        yield asked


def timed(function, *args):
    began = time.perf_counter()
    answer = function(*args)
    return answer, time.perf_counter() - began


REASONS = {"open": "outage", "closed": "outage", "local": "local"}
POLICIES = {"open": [200] * 4, "closed": [503] * 4, "local": [200, 200, 429, 429]}


# Each trouble with each policy, and each of both with sync and async callers.
CASES = [
    (*case, kind)
    for case, kind in zip(itertools.product(TROUBLES, POLICIES), itertools.cycle(["sync", "async"]), strict=False)
]


@pytest.mark.parametrize(("broken", "policy", "ask"), CASES, indirect=["broken", "ask"])
def test_views_answer_by_the_policy_and_in_time(broken, ask, policy):
    broken.options(THROTTLING={"ON_FAILURE": policy})
    taken = []
    for url in PATHS:
        answers = [timed(ask, url) for _ in range(4)]
        assert [response.status_code for response, _ in answers] == POLICIES[policy], url
        assert all("Retry-After" in response for response, _ in answers if response.status_code != 200)
        taken += [seconds for _, seconds in answers]
    assert max(taken) < ANSWERED
    if policy == "open":  # the others render a page
        pairs = [(timed(ask, "/view/")[1], timed(ask, "/plain/")[1]) for _ in range(ROUNDS)]
        assert statistics.median(guarded - plain for guarded, plain in pairs) < OPEN


@pytest.mark.parametrize(("broken", "policy", "twin"), CASES, indirect=["broken", "twin"])
def test_throttles_answer_by_the_policy_and_in_time(broken, twin, policy):
    limit = Throttle("outage", "2/h", on_failure=policy)
    found = [timed(twin, limit.hit, "joe") for _ in range(4)]
    assert [decision.allowed for decision, _ in found] == [status == 200 for status in POLICIES[policy]]
    assert {decision.reason for decision, _ in found} == {REASONS[policy]}
    assert max(seconds for _, seconds in found) < ANSWERED
    later = [timed(twin, limit.hit, "ann") for _ in range(ROUNDS)]
    assert {decision.reason for decision, _ in later} == {REASONS[policy]}
    assert statistics.median(seconds for _, seconds in later) < OPEN
    assert twin(limit.peek, "sue").allowed or policy == "closed"


@pytest.mark.parametrize("policy", POLICIES)
def test_throttles_together_and_the_old_arguments_answer_by_the_policy(broken, policy):
    broken.options(THROTTLING={"ON_FAILURE": policy})
    pair = [(Throttle("a", "2/h"), "joe"), (Throttle("b", "9/h"), "joe")]
    assert [all(hit_all(pair)) for _ in range(4)] == [status == 200 for status in POLICIES[policy]]
    asked = RequestFactory().get("/")
    old = [compat.is_ratelimited(asked, group="g", key="ip", rate="2/h", increment=True) for _ in range(4)]
    assert old == [status != 200 for status in POLICIES[policy]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", POLICIES)
def test_log_ins_are_never_an_error(broken, settings, policy):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, "django.contrib.auth.backends.ModelBackend"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    broken.options(THROTTLING={"ON_FAILURE": policy, "LOGIN_RATES": "2/h"})

    def tried():
        asked = RequestFactory().post("/")
        assert authenticate(asked, username="joe", password="wrong") is None
        return not hasattr(asked, "throttle")

    async def atried():
        asked = RequestFactory().post("/")
        assert await aauthenticate(asked, username="ann", password="wrong") is None
        return not hasattr(asked, "throttle")

    expected = [status == 200 for status in POLICIES[policy]]
    assert [tried() for _ in range(4)] == expected
    assert [asyncio.run(atried()) for _ in range(4)] == expected
