"""The ``{options}`` directive: a table of a component's options, made from its settings class so that it never drifts.

Its argument is the name of a component (``locks``) or the dotted path of a ``Section``.
"""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from django.utils.module_loading import import_string
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from redis_kit.components import BUILTIN

COLUMNS = (("Option", 26), ("Type", 22), ("Default", 18), ("Range", 14), ("Meaning", 40))


class Options(SphinxDirective):
    """Draw the options of one section."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, or a sentence where there is no option."""
        section = find(self.arguments[0])
        rows = [self.row(cells) for cells in options(section)]
        if not rows:
            return [nodes.paragraph("", "There are no options.")]
        group = nodes.tgroup(cols=len(COLUMNS))
        group += [nodes.colspec(colwidth=width) for _, width in COLUMNS]
        group += nodes.thead("", self.row([name for name, _ in COLUMNS]))
        group += nodes.tbody("", *rows)
        return [nodes.table("", group, classes=["options"])]

    def row(self, cells: list[str]) -> nodes.row:
        """Return a row whose cells are Markdown."""
        row = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            self.state.nested_parse(StringList([cell], source=self.get_source_info()[0]), 0, entry)
            row += entry
        return row


def find(name: str) -> type:
    """Return the section of a component, or the one at a dotted path."""
    for path in BUILTIN:
        if path.startswith(f"redis_kit.{name}."):
            section: type = import_string(path).settings
            return section
    found: type = import_string(name)
    return found


def options(section: Any) -> Iterator[list[str]]:
    """Yield the cells of each option, in the order of the class."""
    hints, documented = get_type_hints(section), comments(section)
    for field in fields(section):
        yield [
            f"`{field.name}`",
            described(hints[field.name]),
            default(field),
            least_to_most(section, field.name),
            documented.get(field.name, ""),
        ]


def comments(section: type) -> dict[str, str]:
    """Return what the source says about each option: a ``#:`` comment, or a string below it."""
    found = ModuleAnalyzer.for_module(section.__module__).find_attr_docs()
    return {
        name: re.sub(r"\s+", " ", " ".join(lines)).replace("``", "`").strip()
        for (owner, name), lines in found.items()
        if owner == section.__name__
    }


def described(hint: Any) -> str:
    """Return a type as it is read: choices with "or", classes without their modules."""
    if get_origin(hint) is Literal:
        return " or ".join(f"`{choice!r}`" for choice in get_args(hint))
    shown = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return f"`{re.sub(r'[a-z_]+[.](?=[A-Za-z])', '', shown).replace('NoneType', 'None')}`"


def default(field: Field[Any]) -> str:
    """Return the default as Python writes it."""
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    return "required" if value is MISSING else f"`{value!r}`"


def least_to_most(section: Any, name: str) -> str:
    """Return the range that the section states for an option."""
    limits = section.ranges.get(name)
    return "" if limits is None else f"{limits[0]:g} to {limits[1]:g}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("options", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
