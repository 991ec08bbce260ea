"""The commands about queues in a project without a task framework: they work, or they say what to install."""

import json
import os
import subprocess
import sys
from pathlib import Path

from redis_kit.queues import Queue

CODE = """
import importlib.util, json, os, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("django.tasks", "django_tasks") else find(name, *more)
import django
from django.conf import settings
apps = ["django.contrib.contenttypes", "redis_kit"]
settings.configure(INSTALLED_APPS=apps, REDIS_KIT=json.loads(os.environ["REDIS_KIT"]))
django.setup()
from django.core.management import CommandError, call_command
from redis_kit.queues import framework
assert not framework.FOUND
for line in sys.argv[1:]:
    print("--", line)
    try:
        call_command(*line.split(), stdout=sys.stdout)
    except CommandError as error:
        print(error.returncode, error)
"""


def outputs(kit, *lines):
    """Return what each command prints, and its exit code before an error."""
    environment = {**os.environ, "REDIS_KIT": json.dumps(kit.settings.REDIS_KIT)}
    command = [sys.executable, "-c", CODE, *lines]
    done = subprocess.run(command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [part.partition("\n")[2].strip() for part in done.stdout.split("-- ")[1:]]


def test_commands_work_or_say_what_to_install(kit):
    queue = Queue("mail")
    dead, waiting, _ = queue.put_many([1, 2, 3], group="tenant:7")
    for job in queue.claim():
        queue.nack(job, max_attempts=1)
    paused, resumed, limited, listed, retried, cancelled, purged, *of_tasks = outputs(
        kit,
        "rk_pause mail",
        "rk_resume mail",
        "rk_limit mail group=tenant:7 --concurrency 1",
        "rk_limit mail",
        "rk_retry mail --no-input",
        f"rk_cancel {waiting} --queue mail",
        "rk_purge mail --state ready --no-input",
        "rk_schedule",
        "rk_schedule run nightly",
        "rk_worker --burst",
    )
    assert (paused, resumed) == ("Paused: mail, until resumed.", "Resumed: mail.")
    assert limited == "Changed: group=tenant:7, to concurrency 1 and no limit of starts."
    assert "group=tenant:7" in listed
    assert retried == "Retried in mail: 1 job."
    assert waiting in cancelled
    assert "2 ready jobs" in purged
    assert queue.get(dead) is None
    for text in of_tasks:
        assert text.startswith("78 Tasks need Django 6.0 or newer, or the package django-tasks: pip install ")
