"""The guide from RQ and django-rq, tried on a small project."""

import re

import pytest

from tests.docs.support.pages import PAGES

pytestmark = pytest.mark.once
(PAGE,) = [page for page in PAGES if page.name == "docs/howto/rq.md"]
MAILS = """
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = "mails"
"""
BEGIN = "import django\ndjango.setup()\n"
# What RQ's workers do with a job that waits: they look its function up by name, and call it.
JOB_OF_RQ = """
from django.utils.module_loading import import_string
import_string("shop.tasks.send_receipt")("old@example.com")
"""
FAILING = """
@task(queue_name="mail", max_attempts=1)
def fail():
    raise ValueError
"""
COMMANDS = """
import sys
from django.core.management import call_command
for line in sys.argv[1:]:
    call_command(*line.split())
"""
OPTION = re.compile(r"^\| .* \| `(@task\(.*?\))`", re.MULTILINE)
COMMAND = re.compile(
    r"^\| .* \| .*?`(?:manage\.py )?(rk_\w+ ?[^`]*)`(?:, `(?:manage\.py )?(rk_\w+ ?[^`]*)`)?", re.MULTILINE
)


def test_project_that_moved_from_rq_works_as_the_page_says(make_project):
    tasks, calls = (block.text for block in PAGE.blocks() if block.language == "python")
    options = OPTION.findall(PAGE.text)
    more = "".join(f"{option}\ndef made{number}(): ...\n" for number, option in enumerate(options))
    called = "".join(f"shop.tasks.made{number}.enqueue()\n" for number in range(len(options)))
    calls = f"{BEGIN}{calls}{JOB_OF_RQ}import shop.tasks\nshop.tasks.fail.enqueue()\n{called}"
    project = make_project({"mysite/settings.py": MAILS, "shop/tasks.py": f"{tasks}{FAILING}{more}", "calls.py": calls})
    project.run("-m", "calls")

    commands = [command for found in COMMAND.findall(PAGE.text) for command in found if command and "ID" not in command]
    workers = [command for command in commands if command.startswith("rk_worker")]
    assert len(options) >= 3
    assert {command.split()[0] for command in commands} >= {"rk_worker", "rk_queues", "rk_jobs", "rk_retry", "rk_pause"}
    for command in [*workers, "rk_worker --queue-name mail,default"]:
        project.run("-m", "django", *command.split(), *(() if "--burst" in command else ("--burst",)))
    said = project.run("-c", BEGIN + COMMANDS, *(command for command in commands if command not in workers))
    assert "Retried in mail: 1 job." in said
    mails = "".join(path.read_text() for path in (project.folder / "mails").iterdir())
    assert sorted(re.findall("^To: (.*)", mails, re.MULTILINE)) == ["ann@example.com", "old@example.com"]
    assert re.search(r"^mail +0 +1 ", said, re.MULTILINE)  # the one that is due in five minutes
