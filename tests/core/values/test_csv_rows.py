"""Rows of CSV."""

import re
from datetime import date
from io import StringIO
from pathlib import Path

import pytest

import redis_kit
from redis_kit.core.values.csv_rows import CSVWriter

PACKAGE = Path(redis_kit.__file__).parent
EXPORTS = re.compile(r"^(?:import|from) csv\b|text/csv", re.MULTILINE)


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_that_a_spreadsheet_would_calculate_gets_an_apostrophe(formula):
    file = StringIO()
    CSVWriter(file).writerows([(formula, "a=1"), ("", formula)])
    assert [cell.strip('"') for cell in file.getvalue().split("\r\n")[0].rsplit(",", 1)] == [f"'{formula}", "a=1"]
    assert f"'{formula}" in file.getvalue().partition("a=1")[2]


def test_numbers_and_dates_stay_as_they_are():
    file = StringIO()
    CSVWriter(file, lineterminator="\n").writerow((-1, -0.5, date(2026, 11, 23), None))
    assert file.getvalue() == "-1,-0.5,2026-11-23,\n"


def test_every_export_writes_its_rows_with_this_writer():
    exports = {path for path in PACKAGE.rglob("*.py") if EXPORTS.search(path.read_text())}
    others = {path for path in exports if "import CSVWriter" not in path.read_text() and path.name != "csv_rows.py"}
    assert len(exports) > 1
    assert not others
