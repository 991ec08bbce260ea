"""README and docs as tests read them: pages with their code blocks, links, headings and code spans."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import django

ROOT = Path(__file__).parents[3]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+|:::+)(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)(?P=ticks) *$"
    r"|<!--(?P<comment>.*?)-->",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"!?\[(?:[^\][]|\[[^\]]*\])*\]\(<?(?P<target>[^)\s>]+)>?\)|^\[[^\]]+\]: *(?P<definition>\S+)", re.MULTILINE
)
SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A code block. ``hidden`` ones stand in a comment; ``reason`` says why a block is not run."""

    language: str
    text: str
    line: int
    hidden: bool = False
    reason: str = ""

    @property
    def file(self) -> str:
        """Return the path in its first line: ``# shop/tasks.py``."""
        match = re.match(r"# ([\w./-]+\.py)(?=\s)", self.text)
        return match[1] if match else ""


class Page:
    """A file of Markdown."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.relative_to(ROOT).as_posix()
        self.text = path.read_text()

    def blocks(self) -> Iterator[Block]:
        """Yield the code blocks in their order, without directives."""
        reason = ""
        for match in FENCE.finditer(self.text):
            line = self.text.count("\n", 0, match.start()) + 2
            if match["comment"] is not None:
                kind, _, text = match["comment"].lstrip().partition("\n")
                if kind.strip() == "run":
                    yield Block("python", text, line, hidden=True)
                elif kind.startswith("not run:"):
                    reason = match["comment"].partition(":")[2].strip()
                elif version := re.match(r"not run before Django (\d+)\.(\d+)", kind):
                    is_older = tuple(map(int, version.groups())) > django.VERSION
                    reason = f"Django is older than {version[1]}.{version[2]}" if is_older else ""
                continue
            if not match["language"].startswith("{"):
                indent = len(match["indent"])
                text = "".join(row[indent:] or "\n" for row in match["text"].splitlines(keepends=True))
                yield Block(match["language"], text, line, reason=reason)
            reason = ""

    def prose(self) -> str:
        """Return the text with its blocks and comments blanked out; lines stay where they are."""
        return FENCE.sub(lambda match: "\n" * match[0].count("\n"), self.text)

    def links(self) -> list[str]:
        """Return the targets of links and pictures."""
        text = SPAN.sub("", self.prose())
        return [match["target"] or match["definition"] for match in LINK.finditer(text)]

    def anchors(self) -> set[str]:
        """Return the anchors of headings, as a code host makes them."""
        slugs: set[str] = set()
        for heading in HEADING.findall(self.prose()):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
            slug = base = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            number = 0
            while slug in slugs:
                number += 1
                slug = f"{base}-{number}"
            slugs.add(slug)
        return slugs

    def spans(self) -> Iterator[str]:
        """Yield the names in ``code`` font."""
        for match in SPAN.finditer(self.prose()):
            yield " ".join(match[1].split())


def assert_none(problems: Iterable[str]) -> None:
    """Fail with a list of all problems, one a line, if there is one."""
    listing = "\n".join(problems)
    assert not listing, listing


PAGES = [Page(path) for path in PATHS]
