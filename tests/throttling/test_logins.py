"""Failed log-ins: counted by user name and address, refused before a password is looked at."""

import asyncio
import contextlib

import pytest
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path

from redis_kit.core.component import components
from redis_kit.core.errors import ConfigurationError, PermissionDenied
from redis_kit.throttling import Throttle, throttled
from redis_kit.throttling.checks import LOGINS, messages
from redis_kit.throttling.logins import LoginRefusedMixin, ThrottledLogins, count
from tests.app.models import User
from tests.urls import urlpatterns as routes

MODEL = "django.contrib.auth.backends.ModelBackend"


class LoginForm(LoginRefusedMixin, AuthenticationForm):
    pass


class AdminForm(LoginRefusedMixin, AdminAuthenticationForm):
    pass


urlpatterns = [
    path("login/", LoginView.as_view(template_name="admin/login.html", next_page="/admin/", form_class=LoginForm)),
    path("plain/", LoginView.as_view(template_name="admin/login.html", next_page="/admin/")),
    *routes,
]


class Asked:
    """A backend that counts how often it is asked, and knows a password."""

    calls = 0

    def authenticate(self, request, username=None, password=None):
        type(self).calls += 1
        return User.objects.filter(username=username).first() if password == "right" else None

    async def aauthenticate(self, request, username=None, password=None):
        type(self).calls += 1
        return await User.objects.filter(username=username).afirst() if password == "right" else None

    def get_user(self, pk):
        return User.objects.filter(pk=pk).first()


@pytest.fixture
def logins(kit, settings, db):
    """The kit with the backend before one that counts; joe may fail twice, an address five times."""
    settings.AUTHENTICATION_BACKENDS = [LOGINS, f"{__name__}.Asked"]
    settings.ROOT_URLCONF = __name__
    kit.options(THROTTLING={"LOGIN_RATES": "2/h", "LOGIN_ADDRESS_RATES": "5/h"})
    User.objects.create(username="joe", is_staff=True, is_superuser=True)
    Asked.calls = 0
    return kit


@pytest.fixture(params=["sync", "async"])
def attempt(request, logins):
    """Try to log in by Django's own function, or its async twin; return the user and the request."""

    def tried(name="joe", typed="wrong", address="10.0.0.1", asked="given"):
        found = RequestFactory().post("/", REMOTE_ADDR=address) if asked == "given" else asked
        credentials = {"username": name, "password": typed}
        if request.param == "sync":
            return authenticate(found, **credentials), found
        return asyncio.run(aauthenticate(found, **credentials)), found

    return tried


def post(client, url="/login/", name="joe", typed="wrong", **headers):
    return client.post(url, {"username": name, "password": typed}, **headers)


@pytest.mark.django_db(transaction=True)
def test_third_failure_of_a_user_name_is_stopped_before_the_password(attempt):
    found = [attempt() for _ in range(4)]
    assert [user for user, _ in found] == [None] * 4
    assert Asked.calls == 2
    assert not hasattr(found[1][1], "throttle")
    assert not found[2][1].throttle
    assert found[2][1].throttle.retry_after == pytest.approx(1800, abs=5)
    assert attempt(typed="right")[0] is None
    assert attempt("ann", "wrong")[0] is None
    assert Asked.calls == 3


@pytest.mark.django_db(transaction=True)
def test_address_that_tries_many_names_is_stopped_and_another_is_not(attempt):
    for number in range(7):
        attempt(f"user-{number}")
    assert Asked.calls == 5
    assert attempt("joe", "right")[0] is None
    assert attempt("joe", "right", address="10.0.0.2")[0].username == "joe"


@pytest.mark.django_db(transaction=True)
def test_attempts_that_were_refused_are_not_counted_again(attempt, logins):
    for _ in range(9):
        attempt()
    used = Throttle("logins.address", "5/h").peek("ip:10.0.0.1")
    assert used.limit - used.remaining == 2
    assert attempt("ann")[1].META
    assert Asked.calls == 3


@pytest.mark.django_db(transaction=True)
def test_call_without_a_request_counts_for_the_user_name_alone(attempt):
    for _ in range(4):
        attempt(asked=None)
    assert Asked.calls == 2
    assert Throttle("logins.address", "5/h").peek("ip:127.0.0.1").remaining == 5


@pytest.mark.parametrize("name", ["JOE", " joe ", "ｊｏｅ", "Joe\u00a0"])
def test_user_name_counts_however_it_is_written(logins, name):
    for spelling in ("joe", name, name):
        authenticate(RequestFactory().get("/"), username=spelling, password="wrong")
    assert Asked.calls == 2


@pytest.mark.parametrize("name", ["x" * 100_000, "\ud800", "\x00", "ﷺ" * 1000, 5, ["a"], {"a": 1}])
def test_any_user_name_can_be_counted_and_takes_bounded_room(logins, name):
    for _ in range(3):
        count(RequestFactory().get("/"), {"username": name})
    states = [key for key in logins.keys() if "logins.name" in key]
    assert states
    assert all(len(key) < 120 for key in states)
    assert all(len(one) < 200 for key in states if "offenders" in key for one in logins.client.zrange(key, 0, -1))


@pytest.mark.parametrize("given", ["name:Joe", "Joe", "name: JOE "])
def test_rule_for_a_name_that_log_ins_spell_in_another_way_is_refused(logins, shell, given):
    code, _, errors = shell("rk_throttle", "ban", "logins.name", given, "1h")
    assert (code, "Did you mean name:joe?" in errors) == (1, True)
    assert shell("rk_throttle", "ban", "logins.name", "name:joe", "1h")[0] == 0


def test_credentials_without_a_name_count_for_the_address(logins):
    for number in range(7):
        count(RequestFactory().get("/"), {"token": str(number)})
    assert not Throttle("logins.address", "5/h").peek("ip:127.0.0.1")
    assert not [key for key in logins.keys() if "logins.name" in key]


def test_name_is_taken_from_the_field_of_the_user_model(logins, monkeypatch):
    monkeypatch.setattr(User, "USERNAME_FIELD", "email")
    for _ in range(2):
        count(None, {"email": "a@example.com"})
    assert not Throttle("logins.name", "2/h").peek("name:a@example.com")


def test_failures_count_on_every_kind_of_server(any_kit, settings, db):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, f"{__name__}.Asked"]
    any_kit.options(THROTTLING={"LOGIN_RATES": "2/h", "LOGIN_ADDRESS_RATES": "3/h"})
    Asked.calls = 0
    for name in ("joe", "joe", "joe", "ann", "sue"):
        assert authenticate(RequestFactory().get("/"), username=name, password="wrong") is None
    assert Asked.calls == 3


def test_looking_and_counting_are_one_round_trip_each(logins, commands):
    asked = RequestFactory().get("/")
    authenticate(asked, username="warm", password="wrong")
    with commands(logins) as sent:
        ThrottledLogins().authenticate(asked, username="joe", password="x")
    assert sent == ["EVALSHA"]
    with commands(logins) as sent:
        count(asked, {"username": "joe"})
    assert sent == ["EVALSHA"]


def test_concurrent_failures_count_for_the_address_beyond_the_name(logins):
    asked = [RequestFactory().get("/") for _ in range(5)]
    for one in asked:
        ThrottledLogins().authenticate(one, username="joe", password="x")
    for one in asked:
        count(one, {"username": "joe"})
    assert not Throttle("logins.address", "5/h").peek("ip:127.0.0.1")


def test_django_login_view_says_when_to_come_again(logins):
    client = Client()
    pages = [post(client).content.decode() for _ in range(3)]
    assert ["Try again in 30 minutes" in page for page in pages] == [False, False, True]
    assert "Please enter a correct" in pages[1]
    assert "Please enter a correct" in post(client, "/plain/").content.decode()
    assert Asked.calls == 2


def test_admin_login_is_guarded_and_may_have_the_message_too(logins, monkeypatch):
    from django.contrib import admin

    client = Client()
    for _ in range(3):
        assert "Please enter the correct" in post(client, "/admin/login/").content.decode()
    monkeypatch.setattr(admin.site, "login_form", AdminForm)
    assert "too many failed attempts" in post(client, "/admin/login/").content.decode()
    assert Asked.calls == 2


def test_log_in_resets_failures_of_the_name_but_not_of_the_address(logins):
    client = Client()
    for _ in range(2):
        post(client)
        assert post(client, typed="right").status_code == 302
    assert Asked.calls == 4
    assert Throttle("logins.name", "2/h").peek("name:joe").remaining == 2
    assert Throttle("logins.address", "5/h").peek("ip:127.0.0.1").remaining == 3


def test_log_in_forgets_the_failures_of_what_was_typed(logins, monkeypatch):
    def by_mail(self, request, username=None, password=None):
        return User.objects.get() if password == "right" else None

    monkeypatch.setattr(Asked, "authenticate", by_mail)
    client = Client()
    post(client, name="Joe@Example.com")
    assert Throttle("logins.name", "2/h").peek("name:joe@example.com").remaining == 1
    post(client, name="joe@example.com", typed="right")
    assert Throttle("logins.name", "2/h").peek("name:joe@example.com").remaining == 2


@pytest.mark.django_db(transaction=True)
def test_async_client_logs_in_and_is_stopped(logins):
    async def several():
        client = AsyncClient()
        first = [await client.post("/login/", {"username": "joe", "password": "wrong"}) for _ in range(3)]
        return [b"Try again in" in one.content for one in first]

    assert asyncio.run(several()) == [False, False, True]


def test_session_is_never_bound_to_the_backend(logins):
    client = Client()
    client.force_login(User.objects.get())
    assert client.get("/admin/").status_code == 200
    assert not hasattr(ThrottledLogins(), "get_user")
    assert User(is_active=True).has_perm("app.add_user") is False


def test_nothing_is_counted_without_the_backend(logins, settings):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Asked"]
    for _ in range(5):
        assert authenticate(RequestFactory().get("/"), username="joe", password="wrong") is None
    post(Client(), typed="right")
    assert Asked.calls == 6
    assert logins.keys() == []


class Own(ThrottledLogins):
    """A project's own."""


def test_subclass_of_the_backend_counts_too(logins, settings):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Own", f"{__name__}.Asked"]
    for _ in range(5):
        authenticate(RequestFactory().get("/"), username="joe", password="wrong")
    assert Asked.calls == 2


def test_rates_hold_as_the_settings_say_now(logins):
    def tries():
        Asked.calls = 0
        for _ in range(5):
            authenticate(RequestFactory().get("/"), username="joe", password="wrong")
        return Asked.calls

    assert tries() == 2
    logins.options(THROTTLING={"LOGIN_RATES": "3/h", "LOGIN_ADDRESS_RATES": None})
    assert tries() == 3
    logins.options(THROTTLING={"LOGIN_RATES": None, "LOGIN_ADDRESS_RATES": None})
    assert tries() == 5
    logins.options(THROTTLING={"LOGIN_RATES": "1/h", "ENABLED": False})
    assert tries() == 5


def test_ban_shuts_out_an_address_and_nobody_elses_name(logins):
    logins.options(
        THROTTLING={"LOGIN_RATES": "100/h", "LOGIN_ADDRESS_RATES": "2/h", "LOGIN_BAN": [3, 60, 7200], "REMEMBER": 0}
    )
    asked = RequestFactory().get("/")
    for _ in range(6):
        authenticate(asked, username="joe", password="wrong")
    assert asked.throttle.reason == "banned"
    assert asked.throttle.retry_after > 7000
    elsewhere = RequestFactory().get("/", REMOTE_ADDR="10.9.9.9")
    assert authenticate(elsewhere, username="joe", password="right").username == "joe"


def test_refused_attempts_show_on_the_dashboard_and_send_the_signal(logins):
    told = []

    def listen(throttle, identity, **kwargs):
        told.append((throttle.name, identity))

    throttled.connect(listen)
    for _ in range(3):
        authenticate(RequestFactory().get("/"), username="joe", password="wrong")
    throttled.disconnect(listen)
    assert told == [("logins.name", "name:joe")]


def test_log_ins_follow_the_policy_while_the_server_is_unavailable(own_kit, settings, db):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, f"{__name__}.Asked"]
    settings.ROOT_URLCONF = __name__
    User.objects.create(username="joe", is_staff=True)
    own_kit.server.stop()
    for policy, tries, answers in (("open", 4, 302), ("closed", 0, 200), ("local", 2, 200)):
        own_kit.options(THROTTLING={"LOGIN_RATES": "2/h", "ON_FAILURE": policy})
        Asked.calls, client = 0, Client()
        assert {post(client).status_code for _ in range(4)} == {200}
        assert Asked.calls == tries, policy
        assert post(client, typed="right").status_code == answers, policy
        page = post(client).content.decode()
        assert ("It is not possible to log in at the moment." in page) == (policy == "closed")


def test_refused_commands_are_logged_with_one_hint(own_kit, settings, db, caplog):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, f"{__name__}.Asked"]
    own_kit.options(THROTTLING={"LOGIN_RATES": "2/h", "LOGIN_ADDRESS_RATES": "9/h"})
    own_kit.raw.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
    with contextlib.suppress(PermissionDenied):
        authenticate(RequestFactory().post("/"), username="joe", password="wrong")
    assert "uses the keys" in caplog.text
    assert all(message.count("uses the keys") == 1 for message in caplog.messages)


def test_log_in_in_time_is_forgotten_by_local_counting_too(own_kit, settings, db):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, f"{__name__}.Asked"]
    own_kit.options(THROTTLING={"LOGIN_RATES": "2/h", "ON_FAILURE": "local"})
    own_kit.server.stop()
    Asked.calls = 0
    authenticate(None, username="local", password="wrong")
    assert Throttle("logins.name", "2/h").local_buckets.decide("name:local", 1, consume=False).remaining == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"LOGIN_RATES": "5"},
        {"LOGIN_RATES": "0/s"},
        {"LOGIN_ADDRESS_RATES": 5},
        {"LOGIN_BAN": (1, 2)},
        {"LOGIN_BAN": (0, 60, 60)},
        {"LOGIN_BAN": ("a", "b", "c")},
    ],
)
def test_wrong_settings_are_named(kit, wrong):
    from redis_kit.core import conf
    from redis_kit.throttling.settings import ThrottlingSettings

    kit.options(THROTTLING=wrong)
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        conf.section(ThrottlingSettings)


@pytest.mark.parametrize(("option", "rate"), [("LOGIN_RATES", "5/15m"), ("LOGIN_ADDRESS_RATES", "30/15m")])
def test_rate_of_log_ins_of_a_wrong_type_has_an_example(kit, option, rate):
    from redis_kit.core import conf
    from redis_kit.throttling.settings import ThrottlingSettings

    kit.options(THROTTLING={option: 5})
    (problem,) = conf.problems(ThrottlingSettings)
    assert problem.hint == f"Write a rate, such as '{rate}'."


def test_check_warns_of_a_backend_that_is_asked_too_late_or_alone(kit, settings):
    settings.AUTHENTICATION_BACKENDS = [MODEL, LOGINS]
    assert [message.id for message in messages()] == ["redis_kit.W016"]
    settings.AUTHENTICATION_BACKENDS = (LOGINS,)
    (message,) = messages()
    assert (message.id, "nobody can log in" in message.msg) == ("redis_kit.W016", True)
    settings.AUTHENTICATION_BACKENDS = [LOGINS, MODEL]
    assert list(messages()) == []


def test_component_connects_its_signals_once():
    from django.contrib.auth.signals import user_logged_in, user_login_failed

    component = next(one for one in components() if one.label == "throttling")
    before = len(user_login_failed.receivers), len(user_logged_in.receivers)
    component.ready()
    assert (len(user_login_failed.receivers), len(user_logged_in.receivers)) == before
