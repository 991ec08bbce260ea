"""Policies of the settings: what they may say, what is wrong with them, and how code gets at them."""

import pytest
from django.core.checks import Error, Warning
from django.test import RequestFactory

from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling import Ban, Rate, policy
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.throttles import registered

THROTTLES = "redis_kit.throttling.middleware.ThrottleMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"
PLACE = "REDIS_KIT['THROTTLING']['POLICIES']['api']"


def exempt(request):
    return True


class NoFunction:
    value = 5


@pytest.fixture
def given(kit):
    """Set the policies."""
    return lambda **entries: kit.options(THROTTLING={"POLICIES": entries})


def messages(given, **options):
    given(api={"RATES": "60/m", **options})
    return check_settings()


def test_policy_takes_what_a_throttle_takes(given):
    given(
        api={
            "RATES": "60/m; 1000/d",
            "KEY": "ip",
            "STRATEGY": "sliding_counter",
            "SHADOW": False,
            "ON_FAILURE": "local",
            "BAN": (5, 60, (300, 3600)),
        }
    )
    limit = policy("api")
    assert limit.rates == (Rate(60, 60), Rate(1000, 86_400))
    assert (limit.name, limit.strategy, limit.on_failure, limit.shadow) == ("api", "sliding_counter", "local", False)
    assert limit.ban == Ban(5, 60, (300, 3600))
    assert limit.hit("joe")
    assert check_settings() == []


def test_policies_are_built_once_and_in_their_order(given):
    given(b={"RATES": "1/m"}, a={"RATES": "2/m"})
    assert [policy.name for policy in policies()] == ["b", "a"]
    assert policies()[0].throttle is policies()[0].throttle is policy("b")
    assert {"a", "b"} <= {limit.name for limit in registered.values()}


def test_policies_follow_the_settings(given):
    given(api={"RATES": "1/m"})
    assert policy("api").rates == (Rate(1, 60),)
    given(api={"RATES": "2/m"})
    assert policy("api").rates == (Rate(2, 60),)
    given()
    assert policies() == []


def test_name_that_no_policy_has_is_an_error_with_the_nearest(given):
    given(login={"RATES": "1/m"})
    with pytest.raises(ConfigurationError, match=r"has no 'logn'\. Did you mean 'login'\?"):
        policy("logn")
    given()
    with pytest.raises(ConfigurationError, match=r"has no 'login'\.$"):
        policy("login")


@pytest.mark.parametrize(
    ("paths", "path", "matches"),
    [
        (None, "/", True),
        ([], "/", False),
        ("/api/", "/api/orders/", True),
        ("/api/", "/v2/api/", False),
        ("/api/$", "/api/orders/", False),
        (["/login/", r"/reset/\d+/"], "/reset/7/", True),
        (("/login/", r"/reset/\d+/"), "/reset/x/", False),
        ("api|/v2/", "/v2/", True),
        ("a?/v2/", "/v2/", True),
    ],
)
def test_paths_are_matched_from_their_beginning(given, paths, path, matches):
    given(api={"RATES": "1/m"} | ({} if paths is None else {"PATHS": paths}))
    (policy,) = policies()
    assert policy.matches(RequestFactory().get(path)) == matches


@pytest.mark.parametrize(
    ("options", "id_", "message", "hint"),
    [
        ({"RATE": "5/m"}, "E002", f"{PLACE} has no option 'RATE'.", "Did you mean 'RATES'?"),
        ({"ON_FAILURE": "opn"}, "E011", f"{PLACE}['ON_FAILURE'] is 'opn'; allowed: 'open',", "Did you mean 'open'?"),
        ({"SHADOW": "yes"}, "E006", f"{PLACE}['SHADOW'] is 'yes'; it must be True or False.", None),
        ({"RATES": "5/x"}, "E006", f"{PLACE}['RATES'] is '5/x': The rate '5/x' is not valid. Write", None),
        ({"KEY": "users"}, "E006", f"{PLACE}['KEY'] is 'users': The key 'users' is not known. Did you", None),
        ({"KEY": 5}, "E006", f"{PLACE}['KEY'] is 5; it must be text or a function or a list or a tuple.", None),
        ({"STRATEGY": "gcar"}, "E006", f"{PLACE}['STRATEGY'] is 'gcar': There is no strategy 'gcar'. Did you", None),
        ({"METHODS": ["GTE"]}, "E006", f"{PLACE}['METHODS'] is ['GTE']: methods contains GTE;", None),
        ({"METHODS": 5}, "E006", f"{PLACE}['METHODS'] is 5; it must be text or a list or a tuple or None.", None),
        ({"PATHS": "/api/("}, "E006", f"{PLACE}['PATHS'] is '/api/(': ", None),
        ({"PATHS": ["/a", 5]}, "E006", f"{PLACE}['PATHS'] is ['/a', 5]: each path must be text, not 5.", None),
        ({"PATHS": ""}, "E006", f"{PLACE}['PATHS'] is '': empty text matches every path; omit PATHS to", None),
        ({"PATHS": ["/a", ""]}, "E006", f"{PLACE}['PATHS'] is ['/a', '']: empty text matches every path", None),
        ({"PATHS": "api/"}, "E006", f"{PLACE}['PATHS'] is 'api/': paths begin with '/', so 'api/' never", None),
        ({"PATHS": ["/a", "^api/"]}, "E006", f"{PLACE}['PATHS'] is ['/a', '^api/']: paths begin with '/'", None),
        ({"BAN": (5, 60)}, "E006", f"{PLACE}['BAN'] is (5, 60): A ban is (after, within, seconds)", None),
        ({"BAN": (0, 60, 60)}, "E006", f"{PLACE}['BAN'] is (0, 60, 60): A ban comes after 1", None),
        ({"EXEMPT": 5}, "E006", f"{PLACE}['EXEMPT'] is 5; it must be text or a function or None.", None),
        ({"EXEMPT": f"{__name__}.gone"}, "E015", f"{PLACE}['EXEMPT'] is '{__name__}.gone', which is no", None),
        ({"COUNT_WHEN": f"{__name__}.PLACE"}, "E015", f"{PLACE}['COUNT_WHEN'] is '{__name__}.PLACE', which", None),
        ({"COUNT_WHEN": "failed"}, "E015", f"{PLACE}['COUNT_WHEN'] is 'failed', which is not a function.", None),
    ],
)
def test_wrong_policy_is_named_by_the_system_check(given, options, id_, message, hint):
    (found,) = [message for message in messages(given, **options) if isinstance(message, Error)]
    assert found.id == f"redis_kit.{id_}"
    assert found.msg.startswith(message)
    assert found.hint == hint


@pytest.mark.parametrize("entry", [None, "60/m", {}, {"KEY": "ip"}])
def test_policy_without_rates_is_none(given, entry):
    given(api=entry)
    (found,) = check_settings()
    assert found.id == "redis_kit.E002"
    assert found.msg.startswith(f"{PLACE} ")
    assert found.msg.endswith(" must be a dict with 'RATES'.")


@pytest.mark.parametrize("name", ["", 5, "x" * 600])
def test_name_that_can_not_be_used_is_an_error(kit, name):
    kit.options(THROTTLING={"POLICIES": {name: {"RATES": "5/m"}}})
    (found,) = check_settings()
    assert (found.id, "contains a name that can't be used" in found.msg) == ("redis_kit.E006", True)


def test_burst_that_the_strategy_has_not_is_an_error(given):
    (found,) = messages(given, RATES="60/m burst 5", STRATEGY="fixed_window")
    assert "does not support the burst" in found.msg


def test_wrong_policies_are_an_error_at_the_first_use(given):
    given(api={"RATES": "5/x"})
    with pytest.raises(ConfigurationError, match="is not valid"):
        policies()


def test_handler_that_can_not_be_imported_is_an_error(kit):
    kit.options(THROTTLING={"HANDLER": f"{__name__}.gone"})
    (found,) = check_settings()
    assert (found.id, "['HANDLER']" in found.msg) == ("redis_kit.E015", True)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("user", [Error, "redis_kit.E016"]),
        ("user_or_ip", [Warning, "redis_kit.W019"]),
        (["ip", "user"], [Error, "redis_kit.E016"]),
        (None, [Warning, "redis_kit.W019"]),
        ("ip", []),
        (exempt, []),
    ],
)
def test_policy_by_user_needs_the_user_before_it(given, settings, key, found):
    options = {} if key is None else {"KEY": key}
    settings.MIDDLEWARE = [THROTTLES, USERS]
    assert [part for one in messages(given, **options) for part in (type(one), one.id)] == found
    settings.MIDDLEWARE = [USERS, THROTTLES]
    assert messages(given, **options) == []
    settings.MIDDLEWARE = [THROTTLES, USERS]
    assert messages(given, PATHS=[], **options) == []


def test_paths_that_nothing_applies_are_warned_of(given):
    (found,) = messages(given, PATHS="/api/")
    assert (type(found), found.id) == (Warning, "redis_kit.W018")
    assert messages(given, PATHS=[]) == []


@pytest.mark.parametrize("option", ["RATE", "rates"])
def test_misspelt_rates_are_named_with_the_right_spelling(given, option):
    given(api={option: "60/m"})
    (found,) = check_settings()
    assert (found.msg, found.hint) == (f"{PLACE} has no option {option!r}.", "Did you mean 'RATES'?")


def test_throttle_of_a_policy_complains_about_no_other_policy(given):
    given(worse={"RATES": "5/y"}, good={"RATES": "60/m"}, bad={"RATES": "5/x"})
    assert policy("good").rates == (Rate(60, 60),)
    with pytest.raises(ConfigurationError, match=r"\['bad'\]\['RATES'\] is '5/x'") as caught:
        policy("bad")
    assert caught.value.__suppress_context__
    with pytest.raises(ConfigurationError, match=r"has no 'goud'\. Did you mean 'good'\?"):
        policy("goud")


@pytest.mark.parametrize("options", [{"REMEMBER": 5, "POLICIES": {"api": {"RATES": "60/m"}}}, {"POLICIES": 5}, "x"])
def test_throttle_of_a_policy_complains_about_the_options_around_it(kit, options):
    kit.options(THROTTLING=options)
    with pytest.raises(ConfigurationError, match=r"REMEMBER|it must be a dict|must be a dict\."):
        policy("api")


@pytest.mark.parametrize("ban", [(5, 60), ()])
def test_ban_of_log_ins_with_parts_missing_is_an_error(kit, ban):
    kit.options(THROTTLING={"LOGIN_BAN": ban})
    (found,) = check_settings()
    assert f"is {ban!r}: A ban is (after, within, seconds)" in found.msg
