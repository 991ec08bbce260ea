"""What it takes to have the app installed."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
apps = ["django.contrib.contenttypes", "django.contrib.auth", *sys.argv[1:]]
sockets = []
sys.addaudithook(lambda event, _: sockets.append(event) if event.startswith("socket.") else None)
from django.conf import settings
settings.configure(INSTALLED_APPS=apps, REDIS_KIT={"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1"}}})
import django
django.setup()
print(json.dumps([sockets, "redis" in sys.modules]))
"""


def started(*apps):
    run = subprocess.run([sys.executable, "-c", PROGRAM, *apps], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_installing_the_app_opens_no_socket_and_loads_no_client():
    sockets, client = started("redis_kit")
    assert sockets == []
    assert not client


def test_admin_loads_no_client():
    sockets, client = started("redis_kit", "django.contrib.admin", "django.contrib.messages", "django.contrib.sessions")
    assert sockets == []
    assert not client
