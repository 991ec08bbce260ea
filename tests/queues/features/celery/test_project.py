"""A small project as the guides have it: Celery's app in its package, and the setting that names no app."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.fixtures.process import wait_for

pytestmark = [pytest.mark.once, pytest.mark.alone(12)]
FILES = {
    "mysite/__init__.py": """
from .celery import app as celery_app
__all__ = ["celery_app"]
""",
    "mysite/celery.py": """
import os
from celery import Celery
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
app = Celery("mysite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
""",
    "mysite/settings.py": """
CELERY_BROKER_URL = "%(server)s/5"
TASKS = {"default": {"BACKEND": "redis_kit.queues.celery.CeleryTaskBackend", "QUEUES": []}}
""",
    "shop/tasks.py": """
import time
from pathlib import Path
from celery import shared_task
from django.contrib.auth.models import Group
from redis_kit.queues import Snooze, cancelled, once, resumable, task
from redis_kit.queues.celery import DelayedTask

def note(text):
    with Path("journal").open("a") as file:
        file.write(text + "\\n")

@shared_task(base=DelayedTask, bind=True, max_retries=3)
def send_reminder(self, order_id):
    note(f"{order_id} {self.request.id} {self.request.retries}")
    if not self.request.retries:
        raise self.retry(countdown=1.2)

@task
def add(first, second):
    note("add")
    return first + second

@task(timeout=None)
def walk():
    for group in resumable(Group.objects.all(), every=10):
        note(f"row {group.pk}")
        time.sleep(0.05)

@task
def poll():
    with once("poll") as first:
        note("first" if first else "second")
    if first:
        raise Snooze(1)

@task(on_cancel="flag")
def export():
    note("export")
    while not cancelled():
        time.sleep(0.01)
    note("flagged")
    return "in part"
""",
    "call.py": """
import django
django.setup()
from shop.tasks import add, send_reminder
print(send_reminder.apply_async((42,), countdown=1.2, key="order:42").id)
send_reminder.apply_async((43,), countdown=1.2, key="order:43")
assert send_reminder.cancel("order:43")
result = add.enqueue(1, 2)
assert result.wait_until_finished(30), result.status
assert result.return_value == 3, result.errors
""",
    "jobs.py": """
import json, time, django
from pathlib import Path
django.setup()
from django.contrib.auth.models import Group
from django.core.management import call_command
from shop.tasks import export, poll, walk
call_command("migrate", verbosity=0)
Group.objects.bulk_create(Group(name=number) for number in range(60))
walked, polled, exported = walk.enqueue(), poll.enqueue(), export.enqueue()
while "export" not in (Path("journal").read_text() if Path("journal").exists() else ""):
    time.sleep(0.01)
exported.cancel()
found = []
for result in (polled, exported, walked):
    assert result.wait_until_finished(60), result.status
    found.append([result.status, result.attempts, result.return_value, len(result.errors)])
print(json.dumps(found))
""",
}


@pytest.fixture
def project(make_project):
    """The project, with Celery's server in another database of the kit's."""
    return make_project(FILES)


def test_project_of_the_guides_works_with_three_lines_more(project):
    folder, start = project.folder, project.start
    start("-m", "celery", "-A", "mysite", "worker", "--pool", "solo", "--without-mingle", "--without-gossip")
    start("-m", "django", "rk_worker", "--threads", "1")
    caller = start("-m", "call")
    logs = lambda: "".join(path.read_text() for path in sorted(folder.glob("log*")))  # noqa: E731
    wait_for(lambda: caller.poll() is not None, timeout=90)
    assert caller.returncode == 0, logs()
    id = (folder / "log2").read_text().strip()
    journal = folder / "journal"
    wait_for(lambda: journal.read_text().count("\n") == 3, timeout=60)
    assert sorted(journal.read_text().split("\n")[:3]) == [f"42 {id} 0", f"42 {id} 1", "add"]


def rows(folder: Path) -> list[str]:
    """Return what walk() has done, in its order."""
    journal = folder / "journal"
    return [line for line in (journal.read_text() if journal.exists() else "").splitlines() if line.startswith("row")]


def test_tasks_snooze_see_that_they_are_cancelled_and_go_on_after_a_deploy(project):
    pytest.importorskip("redis_kit.queues.features.cancel")
    folder, start = project.folder, project.start
    start("-m", "django", "rk_worker", "--threads", "2")
    command = ("-m", "celery", "-A", "mysite", "worker", "--concurrency", "3", "--without-mingle", "--without-gossip")
    caller, celery = start("-m", "jobs"), start(*command)
    wait_for(lambda: len(rows(folder)) > 3 or caller.poll() is not None, timeout=60)
    os.kill(celery.pid, signal.SIGTERM)
    start(*command)
    wait_for(lambda: celery.poll() is not None, timeout=30)
    done = len(rows(folder))
    wait_for(lambda: caller.poll() is not None, timeout=60)
    polled, exported, walked = json.loads(caller.log.read_text().splitlines()[-1])
    assert polled == ["SUCCESSFUL", 1, None, 0]
    assert exported == ["SUCCESSFUL", 1, "in part", 0]
    assert walked == ["SUCCESSFUL", 1, None, 0]
    assert 3 < done < 60
    assert rows(folder) == [f"row {number}" for number in range(1, 61)]  # none twice
    words = (folder / "journal").read_text().split()
    assert [words.count(word) for word in ("first", "second", "export", "flagged")] == [1, 1, 1, 1]
