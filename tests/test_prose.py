"""The measure of pages, .ci/prose: sentences are counted without code, tables and links, and long pages fail."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

COMMAND = Path(__file__).parent.parent / ".ci" / "prose"
SHORT = "This is a sentence of seven words.\n\n"
LONG = "This sentence has " + "very " * 30 + "many words.\n\n"


def measured(tmp_path, text):
    """Return the exit code and the output for a page."""
    page = tmp_path / "page.md"
    page.write_text(text)
    done = subprocess.run([sys.executable, COMMAND, page], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_page_of_short_sentences_passes(tmp_path):
    code, output = measured(tmp_path, "# Title\n\n" + SHORT * 20)
    assert (code, "7.0 a sentence   0% long" in output) == (0, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SHORT * 3 + LONG, "over 30 words"),
        (
            "This sentence has far more words than twenty, so that the average of the page is much too high for it.\n",
            "over 20",
        ),
        ("word\n" * 201, "201 lines"),
        ("Redis is back.\n", "Reconnected"),
    ],
)
def test_page_fails(tmp_path, text, problem):
    code, output = measured(tmp_path, text)
    assert (code, problem in output) == (1, True), output


def test_code_tables_and_generated_parts_do_not_count(tmp_path):
    rows = "| a |\n" * 300
    text = f"{SHORT}```python\n{LONG}```\n\n| a | {LONG.strip()} |\n\n<!-- generated: x -->\n{rows}<!-- end -->\n"
    assert measured(tmp_path, text)[0] == 0
