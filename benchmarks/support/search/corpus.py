"""Documents from the text of Debian packages: manual pages, descriptions of packages, and Chinese translations."""

import gettext
import gzip
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MANUALS = Path("/usr/share/man")
CHINESE = Path("/usr/share/locale/zh_CN/LC_MESSAGES")
LENGTHS = (60, 900)  # characters of a paragraph that is a document
_MARKUP = re.compile(r"\\f(?:\(..|\[[^]]*\]|.)|\\s[-+]?\d|\\\*?\((..)|\\[&/|^,%c]")
_HEADING = re.compile(r'\.S[HS] "?([^"]+)"?')


class Document(NamedTuple):
    """A short document. ``kind`` is the section of the manual, that of the package, or the language."""

    title: str
    body: str
    kind: str


def documents(count: int, seed: int = 1) -> list[Document]:
    """Return documents of all three sources in a random order; the same ones on the same machine."""
    by_body = {document.body: document for document in (*_manuals(), *_packages(), *_chinese())}
    chosen = list(by_body.values())
    random.Random(seed).shuffle(chosen)
    if len(chosen) < count:
        raise SystemExit(
            f"This machine has text for {len(chosen):,} documents. Install manual pages, or ask for fewer."
        )
    return chosen[:count]


def _manuals() -> Iterator[Document]:
    for path in sorted(MANUALS.glob("man[1-8]/*.gz")):
        if path.is_symlink() or path.name.startswith("gcloud_"):  # thousands of pages with the same paragraphs
            continue
        name, _, section = path.name.removesuffix(".gz").rpartition(".")
        heading, lines = "", list[str]()
        for line in gzip.decompress(path.read_bytes()).decode(errors="replace").split("\n"):
            text = line.strip()
            if text.startswith((".", "'")) or not text:
                if match := _HEADING.match(text):
                    heading = match[1].capitalize()
                paragraph = " ".join(lines)
                if LENGTHS[0] <= len(paragraph) <= LENGTHS[1]:
                    yield Document(f"{name}: {heading}", paragraph, f"man{section}")
                lines = []
            else:
                lines.append(_MARKUP.sub("", text).replace("\\-", "-").replace("\\e", "\\"))


def _packages() -> Iterator[Document]:
    printed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    for entry in printed.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Description|Section): (.*)$", entry, re.MULTILINE))
        tags = re.search(r"^Tag: (.*(?:\n .*)*)", entry, re.MULTILINE)
        if "Description" in fields:
            words = tags[1].replace("::", " ").replace("\n", "") if tags else ""
            body = f"{fields['Description']}. {words}".strip()
            yield Document(fields["Package"], body, fields.get("Section", "misc"))


def _chinese() -> Iterator[Document]:
    for path in sorted(CHINESE.glob("*.mo")):
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for text in catalog.values():
            if isinstance(text, str) and re.search(r"[\u4e00-\u9fff]{4}", text):
                yield Document(path.stem, text[: LENGTHS[1]], "zh")
