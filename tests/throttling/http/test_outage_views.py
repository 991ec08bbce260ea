"""Throttles and views while the server is unavailable, frozen, full or refuses to write: by policy, and in time."""

import asyncio
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
from tests.fixtures.servers import free_port, wait_for

pytestmark = pytest.mark.alone(60)

ANSWERED, OPEN = 0.3, 0.05  # seconds: any call; the usual one, which doesn't wait for the server


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


def misconfigured(server, folder):
    """Have the server fail to save, upon which it refuses to write."""
    gone = folder / "gone"
    gone.mkdir()
    with server.client() as client:
        client.config_set("dir", str(gone))
        gone.rmdir()
        client.config_set("save", "3600 1")
        client.set("unsaved", 1)
        client.bgsave()
        wait_for(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")


def configured(**options):
    def trouble(server, folder):
        with server.client() as client:
            for name, value in options.items():
                client.config_set(name.replace("_", "-"), value)

    return trouble


def demoted(server, folder):
    with server.client() as client:
        client.replicaof("127.0.0.1", free_port())


def locked(server, folder):
    with server.client() as client:
        client.config_set("requirepass", "secret")
        client.execute_command("CLIENT KILL", "TYPE", "normal")  # connections that stand need none


TROUBLES = {
    "stopped": lambda server, folder: server.stop(),
    "frozen": lambda server, folder: server.freeze(),
    "full": configured(maxmemory=1, maxmemory_policy="noeviction"),
    "without replicas": configured(min_replicas_to_write=1),
    "demoted": demoted,
    "misconfigured": misconfigured,
    "with a password": locked,
}


@pytest.fixture(params=TROUBLES)
def broken(request, make_server, settings, tmp_path):
    """The kit on a server that gets into trouble after it was used."""
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    server = make_server(tcp=True, extra_args=("--enable-protected-configs", "local"))
    kit = Kit(server, settings, patient=False)
    assert Throttle("before", "5/h").hit("joe").reason == ""
    TROUBLES[request.param](server, tmp_path)
    yield kit
    if request.param == "frozen":
        server.thaw()
    kit.close()


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


def in_time(seconds):
    """Say whether calls took as long as allowed; one, or one in eight, may meet a busy machine."""
    *_, last = sorted(seconds)[: -max(1, len(seconds) // 8)]
    return last < ANSWERED and max(seconds) < 4 * ANSWERED


def timed(function, *args):
    began = time.perf_counter()
    answer = function(*args)
    return answer, time.perf_counter() - began


REASONS = {"open": "outage", "closed": "outage", "local": "local"}
POLICIES = {"open": [200] * 4, "closed": [503] * 4, "local": [200, 200, 429, 429]}


@pytest.mark.parametrize("policy", POLICIES)
def test_views_answer_by_the_policy_and_in_time(broken, ask, policy):
    broken.options(THROTTLING={"ON_FAILURE": policy})
    taken = []
    for url in PATHS:
        answers = [timed(ask, url) for _ in range(4)]
        assert [response.status_code for response, _ in answers] == POLICIES[policy], url
        assert all("Retry-After" in response for response, _ in answers if response.status_code != 200)
        taken += [seconds for _, seconds in answers]
    assert in_time(taken)
    if policy == "open":  # the others render a page
        pairs = [(timed(ask, "/view/")[1], timed(ask, "/plain/")[1]) for _ in range(100)]
        assert statistics.median(guarded - plain for guarded, plain in pairs) < OPEN


@pytest.mark.parametrize(("policy", "answers"), [("open", "yyyy"), ("closed", "nnnn"), ("local", "yynn")])
def test_throttles_answer_by_the_policy_and_in_time(broken, twin, policy, answers):
    limit = Throttle("outage", "2/h", on_failure=policy)
    found = [timed(twin, limit.hit, "joe") for _ in range(4)]
    assert ["ny"[decision.allowed] for decision, _ in found] == list(answers)
    assert {decision.reason for decision, _ in found} == {REASONS[policy]}
    assert in_time([seconds for _, seconds in found])
    later = [timed(twin, limit.hit, "ann") for _ in range(100)]
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
