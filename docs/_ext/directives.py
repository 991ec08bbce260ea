"""Sphinx's directives, which a code host would show as raw text: they are added to the pages while these are built."""

import re
from typing import Any

from api_list import is_inner

API = re.compile(r"<!-- generated: api ([\w.]+) -->.*?<!-- end -->", re.DOTALL)
LINK = re.compile(r"\]\(((?:[\w-]+|[\w-]+/index)\.md)\)")


def add_directives(app: Any, docname: str, source: list[str]) -> None:
    """Put autodoc in place of the lists of public names, and give an index page a table of contents."""
    source[0] = API.sub(r"```{eval-rst}\n.. automodule:: \1\n   :members:\n```", source[0])
    if docname.rpartition("/")[2] == "index":
        source[0] += table_of_contents(source[0])


def table_of_contents(text: str) -> str:
    """Return the pages of its folder, and the folders below it, that an index page links to, as a hidden toctree."""
    pages = "\n".join(dict.fromkeys(LINK.findall(text)))
    return f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def skip_inner_methods(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that the lists of public names leave out, except for authors of components."""
    owner = getattr(getattr(value, "fget", value), "__qualname__", "").rpartition(".")[0]
    return True if owner not in ("", "Primitive") and is_inner(name.rpartition(".")[2]) else None
