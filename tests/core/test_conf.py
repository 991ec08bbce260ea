"""Settings: every wrong key and value is named, by the checks and at first use."""

import math

import pytest
from django.core.signals import setting_changed
from django.test.utils import _TestState

from redis_kit.core import conf, connections
from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.errors import ConfigurationError
from redis_kit.locks.settings import LockSettings
from redis_kit.pageviews.middleware import PageViewMiddleware
from redis_kit.queues.settings import QueueSettings
from redis_kit.throttling.middleware import ThrottleMiddleware
from tests.queues.support.tasks import remember

URL = {"default": {"URL": "redis://localhost/0"}}


def found(settings, **kit):
    settings.REDIS_KIT = {"CONNECTIONS": URL, **kit}
    return {(message.id.removeprefix("redis_kit."), message.msg + (message.hint or "")) for message in check_settings()}


def ids(settings, **kit):
    return {identifier for identifier, _ in found(settings, **kit)}


def test_good_settings_pass(settings):
    good = {"PREFIX": "shop", "LOCKS": {"TIMEOUT": 60}, "HASH_KEY": "x" * 32, "TRUSTED_PROXIES": ["10.0.0.0/8"]}
    assert found(settings, **good) == set()


@pytest.mark.parametrize("options", [{"HASH_KEY": b"geheim" * 6}, {"OPERATIONS": {"METRICS_TOKEN": b"geheim" * 6}}])
def test_secret_of_a_wrong_type_is_not_shown(settings, options):
    ((identifier, text),) = found(settings, **options)
    assert identifier == "E006"
    assert text.endswith(" is bytes; it must be text.")


def test_missing_setting_without_a_redis_cache_is_an_error(settings):
    del settings.REDIS_KIT
    (message,) = check_settings()
    assert (message.id, message.msg.partition(",")[0]) == ("redis_kit.E001", "REDIS_KIT is missing")
    settings.REDIS_KIT = {}
    (message,) = check_settings()
    assert (message.id, message.msg.partition(",")[0]) == ("redis_kit.E001", "REDIS_KIT is empty")


@pytest.mark.parametrize("backend", ["django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache"])
def test_missing_setting_with_a_redis_cache_is_enough(settings, backend):
    del settings.REDIS_KIT
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://localhost/3"}}
    assert check_settings() == []


@pytest.mark.parametrize(
    ("kit", "words"),
    [
        ({"URI": "redis://x"}, "'URI'"),
        ({"PREFIKS": "a"}, "'PREFIX'"),
        ({"LOCK": {}}, "'LOCKS'"),
        ({"LOCKS": {"TIMOUT": 3}}, "'TIMEOUT'"),
        ({"CONNECTIONS": {"default": {"URI": "redis://x"}}}, "'URL'"),
        ({"LOCKS": 3}, "must be a dict"),
    ],
)
def test_unknown_key_is_named_with_the_nearest_right_one(settings, kit, words):
    ((identifier, text),) = found(settings, **kit)
    assert identifier == "E002"
    assert words in text


@pytest.mark.parametrize(
    ("kit", "hint"),
    [
        ({"MAX_ATTEMPTS": 3}, "It is an option of REDIS_KIT['QUEUES']."),
        ({"TIMEOUT": 2}, "It is an option of REDIS_KIT['LOCKS']."),
        ({"LOCKS": {"MAX_ATTEMPTS": 3}}, "It is an option of REDIS_KIT['QUEUES']."),
        ({"LOCKS": {"READ_TIMEOUT": 3}}, "It is an option of REDIS_KIT."),
        ({"THROTTLING": {"POLICIES": {"api": {"RATES": "5/m", "ENABLED": True}}}}, "option of REDIS_KIT['THROTTLING']"),
    ],
)
def test_option_of_another_section_names_that_section(settings, kit, hint):
    ((identifier, text),) = found(settings, **kit)
    assert identifier == "E002"
    assert hint in text


@pytest.mark.parametrize(
    ("names", "example"),
    [("mail", "['mail']"), ("mail,default", "['mail', 'default']"), ("mail, default,", "['mail', 'default']")],
)
def test_text_in_place_of_a_list_is_written_as_a_list(settings, names, example):
    ((_, text),) = found(settings, QUEUES={"NAMES": names})
    assert text.endswith(f"Write {example}.")


@pytest.mark.parametrize("url", ["", None, 123, "http://host", "localhost:6379", "redis://host:port", "redis://[::1"])
def test_wrong_url_is_an_error(settings, url):
    ((identifier, text),) = found(settings, CONNECTIONS={"default": {"URL": url}})
    assert identifier == "E003"
    assert "rediss://" in text or "redis://localhost" in text


def test_password_is_masked_in_messages(settings):
    texts = found(settings, CONNECTIONS={"default": {"URL": "http://user:geheim@host/?password=geheim"}})
    assert texts
    assert not any("geheim" in text for _, text in texts)


@pytest.mark.parametrize("url", ["redis://h/-1", "redis://h/99", "redis://h/a", "redis://h?db=99", "unix:///s?db=a"])
def test_wrong_database_is_an_error(settings, url):
    assert ids(settings, CONNECTIONS={"default": {"URL": url}}) == {"E004"}


def test_cluster_has_database_0_only(settings):
    assert ids(settings, CONNECTIONS={"default": {"CLUSTER": "redis://h/1"}}) == {"E004"}
    assert ids(settings, CONNECTIONS={"default": {"CLUSTER": "redis://h/0"}}) == set()


@pytest.mark.parametrize("prefix", ["", "a{b", "a}", "a*", "a b", "x" * 65, "a\ud800", "a\n", "a\x07"])
def test_wrong_prefix_is_an_error(settings, prefix):
    assert ids(settings, PREFIX=prefix) == {"E005"}


@pytest.mark.parametrize("lease", [0, -1, "30", True, math.nan, math.inf, 1e12])
def test_wrong_timeout_names_the_range(settings, lease):
    ((identifier, text),) = found(settings, LOCKS={"TIMEOUT": lease})
    assert identifier == "E006"
    assert "0.1 to 86,400" in text


def test_heartbeat_must_be_well_below_the_worker_timeout(settings):
    assert ids(settings, QUEUES={"HEARTBEAT_INTERVAL": 6, "WORKER_TIMEOUT": 10}) == {"E007"}


@pytest.mark.parametrize(
    "proxies", [["10.0.0.0/8", "house"], ["10.0.0.0/33"], ["0.0.0.0/0"], ["fd00::/8", "::/0"], -1, 99]
)
def test_wrong_proxies_are_an_error(settings, proxies):
    assert ids(settings, TRUSTED_PROXIES=proxies) == {"E008"}


@pytest.mark.parametrize("header", ["", " ", "X-Forwarded-For ", "bad header:", "X-Förwarded", "X-Real-IP\n"])
def test_text_that_names_no_header_is_an_error(settings, header):
    assert ids(settings, FORWARDED_HEADER=header) == {"E008"}


def test_header_that_is_not_read_is_a_warning(settings):
    ((identifier, text),) = found(settings, FORWARDED_HEADER="CF-Connecting-IP")
    assert identifier == "W027"
    assert "without REDIS_KIT['TRUSTED_PROXIES'], so no header is read" in text
    assert found(settings, FORWARDED_HEADER="CF-Connecting-IP", TRUSTED_PROXIES=1) == set()


def test_header_in_the_spelling_of_meta_is_an_error_that_shows_its_name(settings):
    ((identifier, text),) = found(settings, FORWARDED_HEADER="HTTP_X_FORWARDED_FOR")
    assert identifier == "E008"
    assert "'X-Forwarded-For'" in text
    assert ids(settings, FORWARDED_HEADER="CF-Connecting-IP", TRUSTED_PROXIES=1) == set()


@pytest.mark.parametrize("key", ["sample", " " * 40, "x" * 31 + " ", "x" * 40 + "\ud800", "x" * 40 + "\n"])
def test_hash_key_that_can_be_guessed_is_an_error(settings, key):
    assert ids(settings, HASH_KEY=key) == {"E009"}


def test_single_connection_is_an_error(settings):
    ((identifier, text),) = found(settings, MAX_CONNECTIONS=1)
    assert identifier == "E006"
    assert "2 to 10,000" in text
    with pytest.raises(ConfigurationError, match="2 to 10,000"):
        connections.client()


def test_typo_in_a_policy_names_the_choices(settings):
    ((identifier, text),) = found(settings, THROTTLING={"ON_FAILURE": "opne"})
    assert identifier == "E011"
    assert "'open'" in text
    assert "'closed'" in text


def test_several_faults_are_all_reported(settings):
    assert ids(settings, PREFIX="a*", LOCKS={"TIMEOUT": 0}, URI=1) == {"E005", "E006", "E002"}


def test_unimportable_component_is_reported(settings):
    assert ids(settings, EXTRA_COMPONENTS=["nowhere.Component"]) == {"E002"}
    assert ids(settings, EXTRA_COMPONENTS=["redis_kit.core.errors.RedisKitError"]) == {"E002"}


def test_wrong_value_is_an_error_at_first_use_too(settings):
    settings.REDIS_KIT = {"LOCKS": {"TIMOUT": 1}}
    with pytest.raises(ConfigurationError, match="Did you mean 'TIMEOUT'"):
        conf.section(LockSettings)


def test_options_follow_the_settings(settings):
    settings.REDIS_KIT = {"QUEUES": {"HEARTBEAT_INTERVAL": 1}}
    assert conf.section(QueueSettings).HEARTBEAT_INTERVAL == 1
    settings.REDIS_KIT = {"QUEUES": {"HEARTBEAT_INTERVAL": 0.5}}
    assert conf.section(QueueSettings).HEARTBEAT_INTERVAL == 0.5


@pytest.mark.parametrize("whole", [["a"], "redis://h", 3])
def test_setting_that_is_not_a_dict_is_an_error(settings, whole):
    settings.REDIS_KIT = whole
    assert [message.id for message in check_settings()] == ["redis_kit.E002"]


def test_connections_without_a_default(settings):
    assert ids(settings, CONNECTIONS={"jobs": {"URL": "redis://h"}}) == {"E002"}


@pytest.mark.parametrize("value", [False, {}, "yes", None, 1])
def test_embedded_is_true_or_absent(settings, value):
    settings.DEBUG = True
    assert ids(settings, CONNECTIONS={"default": {"EMBEDDED": value}}) == {"E003"}
    assert ids(settings, CONNECTIONS={"default": {"EMBEDDED": True}}) == set()


def test_embedded_server_in_production_is_reported(settings, monkeypatch):
    monkeypatch.delenv("REDIS_KIT_EMBEDDED_URL", raising=False)
    monkeypatch.delattr(_TestState, "saved_data")
    ((identifier, text),) = found(settings, CONNECTIONS={"default": {"EMBEDDED": True}})
    assert identifier == "E003"
    assert "DEBUG=False" in text


def test_wrong_option_hides_no_problem_of_another_one(settings):
    throttling = {
        "ON_FAILURE": "opne",
        "LOGIN_RATES": "x",
        "HANDLER": "nowhere.handler",
        "POLICIES": {
            "a": 3,
            "b": {"RATES": "x", "PATHS": ["api/"]},
            "c": {"RATES": "5/m", "SHADOW": 3, "PATHS": ["("], "EXEMPT": "nowhere.exempt"},
        },
    }
    shown = found(settings, THROTTLING=throttling)
    for words in (
        "['ON_FAILURE'] is 'opne'",
        "['LOGIN_RATES']: The rate 'x'",
        "['HANDLER'] is 'nowhere.handler'",
        "['a'] is a whole number; it must be a dict",
        "['b']['RATES'] is 'x'",
        "['b']['PATHS']",
        "['c']['SHADOW']",
        "['c']['PATHS']",
        "['EXEMPT'] is 'nowhere.exempt'",
    ):
        assert any(words in text for _, text in shown), words


def test_time_limit_that_is_too_short_hides_no_missing_module(settings):
    assert ids(settings, QUEUES={"WORKER_TIMEOUT": 1, "IMPORTS": ["nowhere.tasks"]}) >= {"E007", "E017"}
    assert ids(settings, QUEUES={"RETRY_BACKOFF": "x", "IMPORTS": ["nowhere.tasks", "a b"]}) == {"E006", "E017"}


@pytest.mark.parametrize(
    ("value", "hint"), [("mail", "Write ['mail']."), (None, "Leave it out for its default, ('default',)."), (5, "")]
)
def test_message_about_a_list_says_what_to_write(settings, value, hint):
    ((_, text),) = found(settings, QUEUES={"NAMES": value})
    assert text == f"REDIS_KIT['QUEUES']['NAMES'] is {value!r}; it must be a list or a tuple.{hint}"


@pytest.mark.parametrize("value", ["1", "0"])
def test_number_that_is_written_as_text_is_to_be_a_number(settings, value):
    ((_, text),) = found(settings, TRUSTED_PROXIES=value)
    assert text.endswith(f"Write {value}.")


def test_option_of_a_wrong_type_is_not_compared_with_others(settings):
    ((identifier, text),) = found(settings, QUEUES={"WORKER_TIMEOUT": "x", "HEARTBEAT_INTERVAL": 20})
    assert (identifier, "WORKER_TIMEOUT'] is 'x'" in text) == ("E006", True)


@pytest.mark.parametrize(("names", "calls"), [((), 1), (("CACHES",), 1), (("REDIS_KIT", "CACHES"), 2), (("TASKS",), 0)])
def test_what_depends_on_a_setting_is_forgotten_as_it_changes(settings, kit, monkeypatch, names, calls):
    monkeypatch.setattr(setting_changed, "receivers", setting_changed.receivers[:])
    forgotten = []
    conf.on_change(lambda: forgotten.append(1), *names)
    settings.REDIS_KIT = settings.REDIS_KIT
    settings.CACHES = settings.CACHES
    assert len(forgotten) == calls


@pytest.fixture
def uninstalled(settings):
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "redis_kit"]


MISSING = "'redis_kit' is missing from INSTALLED_APPS"


@pytest.mark.parametrize("middleware", [ThrottleMiddleware, PageViewMiddleware])
def test_middleware_warns_once_if_the_app_is_not_installed(uninstalled, middleware):
    with pytest.warns(RuntimeWarning, match=MISSING):
        middleware(lambda request: None)
    middleware(lambda request: None)


def test_first_enqueue_warns_if_the_app_is_not_installed(kit, uninstalled):
    with pytest.warns(RuntimeWarning, match=MISSING):
        remember.enqueue(1)
    remember.enqueue(2)


def test_nothing_is_said_if_the_app_is_installed(kit):
    remember.enqueue(1)
    ThrottleMiddleware(lambda request: None)
