"""Settings of the commands that tests run in processes of their own: REDIS_KIT and the app come from the test."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "shop"]
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
