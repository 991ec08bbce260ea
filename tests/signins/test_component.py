import subprocess
import sys
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import run_checks

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.signins.settings import REMEDY, SignInSettings
from tests.signins.people import saved


@pytest.mark.parametrize(
    "options",
    [
        {"MILESTONES": (7, 0)},
        {"MILESTONES": [-1]},
        {"MILESTONES": 7},
        {"MILESTONES": (7, 7)},
        {"DAY_START_HOUR": 24},
        {"TIMEZONE": 3},
        {"ZONE": "UTC"},
    ],
)
def test_wrong_options_are_refused(settings, options):
    settings.REDIS_KIT = {"SIGNINS": options}
    with pytest.raises(ConfigurationError, match="SIGNINS"):
        conf.section(SignInSettings)


@pytest.mark.parametrize("given", ["7", 7, ["7"]])
def test_milestones_of_a_wrong_type_have_an_example(settings, given):
    settings.REDIS_KIT = {"SIGNINS": {"MILESTONES": given}}
    (problem,) = conf.problems(SignInSettings)
    assert problem.hint == "Write a list of whole numbers, such as [7, 30]."


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("Asia/Tokyo", "'Asia/Tokyo': that is a zone."),
        ("UTC", "'UTC': that is a zone."),
        ("asia/tokyo", "'asia/tokyo': that is not a dotted attribute."),
        ("+09:00", "'+09:00': that is not a dotted attribute."),
        ("", "'': that is not a dotted attribute."),
        (ZoneInfo("Asia/Tokyo"), "it must be text or a function or None."),
    ],
    ids=str,
)
def test_zone_in_the_place_of_an_attribute_is_refused_with_what_to_write(settings, given, words):
    settings.REDIS_KIT = {**settings.REDIS_KIT, "SIGNINS": {"TIMEZONE": given}}
    (message,) = run_checks(tags=["redis_kit"])
    assert (message.id, message.hint) == ("redis_kit.E006", REMEDY)
    assert message.msg.startswith("REDIS_KIT['SIGNINS']['TIMEZONE'] is ")
    assert message.msg.endswith(words)
    with pytest.raises(ConfigurationError) as error:
        saved(1).sign_in()
    assert str(error.value) == f"{message.msg} {REMEDY}"


@pytest.mark.parametrize("given", ["timezone", "profile.timezone", "localtime", str, None], ids=str)
def test_attribute_or_function_is_a_right_time_zone(settings, given):
    settings.REDIS_KIT = {"SIGNINS": {"TIMEZONE": given}}
    assert list(conf.problems(SignInSettings)) == []


def test_models_load_without_a_redis_client():
    code = "import sys, redis_kit.signins, redis_kit.pageviews; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
