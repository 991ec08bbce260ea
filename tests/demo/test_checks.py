"""``rk_demo --check``: a run that passes, and the report of a part that does not."""

import os
import re
import subprocess
import sys

import pytest

from tests.demo.support.demo_process import ROOT

pytestmark = pytest.mark.alone(15)

PARTS = ["site", "job done", "delayed job", "lock refused", "log", "throttle", "views and visitors"]
PARTS += ["sign-in streak", "chat and bell", "unknown articles", "autocomplete", "search", "dashboard", "links"]
LINE = re.compile(r"^(.{20}) (ok|FAILED) +(\S.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def passed(start):
    demo = start("--check", READING_REPORT_SECONDS="0.7")
    demo.code = demo.ended(seconds=90)
    return demo


def test_check_of_every_part_passes(passed):
    assert passed.code == 0, passed.text
    assert passed.text.endswith(f"\nAll {len(PARTS)} checks passed.\n")


def test_check_prints_a_line_with_a_figure_for_each_part(passed):
    lines = LINE.findall(passed.text)
    assert [(name.strip(), result) for name, result, _ in lines] == [(part, "ok") for part in PARTS]
    assert all(re.search(r"\d", figure) for _, _, figure in lines)


def test_delayed_job_is_less_than_a_second_late(passed):
    assert 0 <= int(re.search(r"delayed job .* (\d+) ms late", passed.text)[1]) < 1000


def test_check_leaves_no_process_or_file(passed):
    assert passed.leaves_nothing()
    assert not (passed.folder / "home").exists()


def test_check_fails_and_names_the_broken_part():
    command = [sys.executable, "-m", "tests.demo.support.broken_site"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1, ended.stderr
    results = {name.strip(): (result, figure) for name, result, figure in LINE.findall(ended.stdout)}
    assert results == {
        "site": ("ok", "0.5 s after the start of the command"),
        "throttle": ("FAILED", "vote 6 was answered with 302"),
        "sign-in streak": ("FAILED", "the streak is None, not 7"),
        "fine": ("ok", "1 figure"),
    }
    assert ended.stdout.endswith("\n2 of 4 checks failed: throttle, sign-in streak.\n")
