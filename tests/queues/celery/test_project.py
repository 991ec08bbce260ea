"""A small project as the guides have it: Celery's app in its package, and the setting that names no app."""

import os
import signal
import subprocess
import sys

import pytest

from tests.fixtures.process import wait_for

pytestmark = [pytest.mark.once, pytest.mark.alone(12)]
FILES = {
    "manage.py": """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
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
SECRET_KEY = "only-for-tests-and-as-long-as-a-real-one-is"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "redis_kit", "shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
CELERY_BROKER_URL = "%(server)s/5"
REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "%(server)s/4"}}, "PREFIX": "%(prefix)s"}
TASKS = {"default": {"BACKEND": "redis_kit.queues.celery.CeleryTaskBackend", "QUEUES": []}}
""",
    "shop/__init__.py": "",
    "shop/tasks.py": """
from pathlib import Path
from celery import shared_task
from redis_kit.queues import task
from redis_kit.queues.celery import DelayedTask

def note(text):
    with Path("journal").open("a") as file:
        file.write(text + "\\\\n")

@shared_task(base=DelayedTask, bind=True, max_retries=3)
def send_reminder(self, order_id):
    note(f"{order_id} {self.request.id} {self.request.retries}")
    if not self.request.retries:
        raise self.retry(countdown=1.2)

@task
def add(first, second):
    note("add")
    return first + second
""",
    "call.py": """
import os, sys, django
sys.path.insert(0, ".")
os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
django.setup()
from shop.tasks import add, send_reminder
print(send_reminder.apply_async((42,), countdown=1.2, key="order:42").id)
send_reminder.apply_async((43,), countdown=1.2, key="order:43")
assert send_reminder.cancel("order:43")
result = add.enqueue(1, 2)
assert result.wait_until_finished(30), result.status
assert result.return_value == 3, result.errors
""",
}


@pytest.fixture
def project(tmp_path, tcp_valkey, kit):
    """The folder of the project, and a function that starts Python there."""
    values = {"server": f"redis://127.0.0.1:{tcp_valkey.port}", "prefix": kit.prefix}
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text % values if "%(" in text else text.replace("\\\\n", "\\n"))
    started = []
    own = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}

    def start(*arguments):
        with (tmp_path / f"log{len(started)}").open("wb") as log:
            command = [sys.executable, *arguments]
            started.append(subprocess.Popen(command, cwd=tmp_path, env=own, stdout=log, stderr=log, process_group=0))
        return started[-1]

    yield tmp_path, start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_project_of_the_guides_works_with_three_lines_more(project):
    folder, start = project
    start("-m", "celery", "-A", "mysite", "worker", "--pool", "solo", "--without-mingle", "--without-gossip")
    start("manage.py", "rk_worker", "--threads", "1")
    caller = start("call.py")
    logs = lambda: "".join(path.read_text() for path in sorted(folder.glob("log*")))  # noqa: E731
    wait_for(lambda: caller.poll() is not None, timeout=90)
    assert caller.returncode == 0, logs()
    id = (folder / "log2").read_text().strip()
    journal = folder / "journal"
    wait_for(lambda: journal.read_text().count("\n") == 3, timeout=60)
    assert sorted(journal.read_text().split("\n")[:3]) == [f"42 {id} 0", f"42 {id} 1", "add"]
