"""Settings of the commands that tests run in processes of their own: REDIS_KIT and the app come from the test."""

import json
import os

SECRET_KEY = "only-for-tests-and-as-long-as-a-real-one-is"
USE_TZ = True
INSTALLED_APPS = ["redis_kit", "shop"]
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
