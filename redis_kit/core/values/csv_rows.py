"""Rows of CSV that spreadsheets show as they are: no text in them is taken for a formula."""

import csv
from collections.abc import Iterable
from typing import Any

FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class CSVWriter:
    """Writes rows to a file, or to anything with ``write()``, as ``csv.writer`` does.

    An apostrophe is put before text that a spreadsheet would take for a formula; see "CSV injection" of OWASP. Numbers
    and dates are written as they are.
    """

    def __init__(self, file: Any, *, lineterminator: str = "\r\n") -> None:
        self._writer = csv.writer(file, lineterminator=lineterminator)

    def writerow(self, row: Iterable[Any]) -> None:
        """Write a row."""
        self._writer.writerow(
            [f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value for value in row]
        )

    def writerows(self, rows: Iterable[Iterable[Any]]) -> None:
        """Write several rows."""
        for row in rows:
            self.writerow(row)
