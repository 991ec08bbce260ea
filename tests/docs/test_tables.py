"""Tables of README and docs are whole: a line between their rows would end them."""

import re

import pytest

from tests.docs.support.pages import PAGES, assert_none

SEPARATOR = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
CELL = re.compile(r"(?<!\\)\|")


def test_tables_are_whole():
    assert_none(f"{page.name}: {row}" for page in PAGES for row in problems(page.prose()))


@pytest.mark.parametrize(
    "text", ["| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| 3 | 4 |\n", "| a | b |\n| --- | --- |\n| 1 | 2 | 3 |\n"]
)
def test_broken_table_is_reported(text):
    assert list(problems(text))


def problems(text: str):
    """Yield the rows that do not belong to a table, or have another number of cells than its header."""
    lines = ["", *re.sub(r"`[^`\n]*`", "X", text).splitlines(), ""]
    cells = 0
    for above, line, below in zip(lines, lines[1:], lines[2:], strict=False):
        if not line.startswith("|"):
            continue
        if not above.startswith("|"):
            cells = len(CELL.findall(line))
            if not SEPARATOR.fullmatch(below.strip()):
                yield line
        elif len(CELL.findall(line)) != cells:
            yield line
