import subprocess
import sys

import pytest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.signins.settings import SignInSettings


@pytest.mark.parametrize(
    "options",
    [
        {"MILESTONES": (7, 0)},
        {"MILESTONES": [-1]},
        {"MILESTONES": 7},
        {"DAY_START_HOUR": 24},
        {"TIMEZONE": 3},
        {"ZONE": "UTC"},
    ],
)
def test_wrong_options_are_refused(settings, options):
    settings.REDIS_KIT = {"SIGNINS": options}
    with pytest.raises(ConfigurationError, match="SIGNINS"):
        conf.section(SignInSettings)


def test_models_load_without_a_redis_client():
    code = "import sys, redis_kit.signins, redis_kit.pageviews; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
