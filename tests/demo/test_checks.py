"""``rk_demo --check``: a run that passes, and a run with a broken part."""

import re

import pytest

pytestmark = pytest.mark.alone(15)

PARTS = ["site", "job done", "delayed job", "lock refused", "throttle", "views and visitors", "sign-in streak"]
PARTS += ["dashboard", "links"]
LINE = re.compile(r"^(.{20}) (ok|FAILED) +(\S.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def runs(start, folder):
    """Run both at once, since they mostly wait. Each has its own folder."""
    demos = []
    for name, environment in (("passed", {}), ("failed", {"READING_VOTE_RATE": "1000/m"})):
        (folder / name).mkdir()
        demos.append(start("--check", folder=folder / name, READING_REPORT_SECONDS="0.7", **environment))
    for demo in demos:
        demo.code = demo.ended(seconds=90)
    return demos


@pytest.fixture(scope="module")
def passed(runs):
    return runs[0]


@pytest.fixture(scope="module")
def failed(runs):
    return runs[1]


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


def test_check_fails_and_names_the_broken_part(failed):
    assert failed.code == 1
    results = {name.strip(): result for name, result, _ in LINE.findall(failed.text)}
    assert results == {part: "FAILED" if part == "throttle" else "ok" for part in PARTS}
    assert "vote 6 was answered with 302" in failed.text
    assert failed.text.endswith(f"\n1 of {len(PARTS)} checks failed: throttle.\n")
    assert failed.leaves_nothing()
