"""Every link and every anchor in README and docs exists."""

import re
import tomllib
from urllib.parse import urlsplit

from tests.docs.support.pages import PAGES, ROOT, Page, assert_none

URL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {}).get("Repository", "")


def test_links_lead_somewhere():
    assert_none(f"{page.name}: {target}" for page in PAGES for target in page.links() if not _exists(page, target))


def test_pages_that_the_code_names_exist():
    source = "".join(path.read_text() for folder in ("redis_kit", "demo") for path in (ROOT / folder).rglob("*.py"))
    named = set(re.findall(r"\bdocs/[\w/-]+\w", source))
    assert named
    assert not [name for name in named if not (ROOT / f"{name}.md").exists() and not (ROOT / name).exists()]


def test_roles_and_directives_that_a_code_host_does_not_know_are_not_used():
    sphinx = re.compile(r"\{(?:doc|ref)\}`|^\([\w-]+\)=$|^ *(?:```+|:::+)\{", re.MULTILINE)
    assert not [page.name for page in PAGES if sphinx.search(page.text)]


def test_every_page_is_within_two_clicks_of_the_index():
    docs = {page.path: page for page in PAGES if (ROOT / "docs") in page.path.parents}
    reached = new = {ROOT / "docs" / "index.md"}
    for _ in range(2):
        targets = {(path.parent / link.partition("#")[0]).resolve() for path in new for link in docs[path].links()}
        new = (targets & set(docs)) - reached
        reached = reached | new
    assert not [page.name for path, page in docs.items() if path not in reached]


def _exists(page: Page, target: str) -> bool:
    start = page.path.parent
    if URL and target.startswith(URL):
        path = target.removeprefix(URL)
        for view in ("/blob/main/", "/raw/main/", "/tree/main/"):
            if path.startswith(view):
                target, start = path.removeprefix(view), ROOT
                break
        else:
            return True
    if urlsplit(target).scheme:
        return True
    if page.name == "README.md" and start != ROOT:
        return False
    path, _, anchor = target.partition("#")
    file = (start / path) if path else page.path
    if not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in Page(file).anchors()
