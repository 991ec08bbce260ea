"""What a reader's page of letters says."""

import re
from typing import NamedTuple

from example_project.demo.visitor import Visitor

ROW = re.compile(r'<span class="chip (\w+)">.*?<data value="(-?[\d.]+)">', re.DOTALL)


class Letter(NamedTuple):
    """A row of the page: what it is, and by how many seconds it was late."""

    kind: str
    late: float


def letters(reader: Visitor, kind: str) -> list[Letter]:
    """Return a reader's letters of a kind, the newest first."""
    found = [Letter(name, float(late)) for name, late in ROW.findall(reader.get("/letters/").text)]
    return [letter for letter in found if letter.kind == kind]
