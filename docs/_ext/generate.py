#!/usr/bin/env python3
"""Write the tables of the reference that are made from the code: options, connections, commands, checks, API.

    make reference

In the pages below ``docs/reference`` each of these tables stands between ``<!-- generated: KIND NAME -->`` and
``<!-- end -->``, so it also reads on a code host. A test compares the pages with the code.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
REGION = re.compile(r"(<!-- generated: (?P<kind>\w+) ?(?P<name>[\w.]*) -->\n)(?P<text>.*?)(<!-- end -->)", re.DOTALL)
COMMON = {
    "help",
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
}


def filled(text: str) -> str:
    """Return a page with its regions made from the code."""
    return REGION.sub(
        lambda match: match[1] + "\n" + KINDS[match["kind"]](match["name"]).strip() + "\n\n" + match[5], text
    )


def settings_table(name: str) -> str:
    """Return the options of a component, or of the section at a dotted path."""
    section = _section(name)
    hints, documented = get_type_hints(section), _comments(section)
    rows = [
        (
            f"`{field.name}`",
            _described(hints[field.name]),
            _default(field),
            _range(section, field.name),
            documented[field.name],
        )
        for field in fields(section)
    ]
    return _table(("Option", "Type", "Default", "Range", "Meaning"), rows)


def connection_table(name: str) -> str:
    """Return a group of the options of an entry of CONNECTIONS."""
    from redis_kit.core import conf
    from redis_kit.core.client import connection_options

    group = getattr(connection_options, name)
    options = (group,) if isinstance(group, connection_options.ConnectionOption) else group
    rows = []
    for option in options:
        kind = "any" if option.kind is Any else conf.describe(option.kind)
        rows.append((f"`{option.name}`", kind, option.text))
    return _table(("Option", "Type", "Meaning"), rows)


def command_table(name: str) -> str:
    """Return the usage of a command, and its arguments; for each action if it has some."""
    from django.core.management import load_command_class

    if name == "rk_demo":
        from demo.management.commands.rk_demo import Command

        command = Command()
    else:
        command = load_command_class("redis_kit", name)
    parser = command.create_parser("manage.py", name)
    texts = list(_parsers(parser, f"manage.py {name}", parser.description or ""))
    if "exit_codes" in vars(type(command)):  # those of all commands stand at the top of the page
        texts.append(str(parser.epilog))
    return "\n\n".join(texts)


def checks_table(_: str) -> str:
    """Return the system checks that the code can report: each id with the file that reports it."""
    from reference_checks import MEANINGS

    ids = sorted(check_ids(), key=lambda code: (code[0], code))
    return _table(
        ("Id", "Level", "Meaning"),
        [(f"`redis_kit.{code}`", "Error" if code[0] == "E" else "Warning", MEANINGS.get(code, "")) for code in ids],
    )


def check_ids() -> set[str]:
    """Return the ids of the system checks in the code."""
    source = "".join(path.read_text() for path in (ROOT / "redis_kit").rglob("*.py"))
    return set(re.findall(r"[\"'.]([EW]0\d\d)[\"']", source))


def api_list(name: str) -> str:
    """Return the public names of a module as a list."""
    import api_list

    return api_list.api_list(name)


def metrics_table(_: str) -> str:
    """Return the metrics of all components, and those about the scrape."""
    from redis_kit.core.component import components
    from redis_kit.core.metrics.prometheus import FAILED, UP

    sources = [source for component in components() for source in component.load_metrics()]
    rows = [
        (f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help)
        for metric in [UP, FAILED, *(metric for source in sources for metric in source.metrics)]
    ]
    return _table(("Name", "Type", "Labels", "Meaning"), sorted(rows))


KINDS: dict[str, Callable[[str], str]] = {
    "settings": settings_table,
    "connection": connection_table,
    "command": command_table,
    "checks": checks_table,
    "api": api_list,
    "metrics": metrics_table,
}


def _parsers(parser: argparse.ArgumentParser, title: str, description: str) -> Iterator[str]:
    yield " ".join(description.split())
    branches: list[Any] = []
    rows, usage = [], []
    for action in sorted(parser._actions, key=lambda action: bool(action.option_strings)):
        if isinstance(action, argparse._SubParsersAction):
            branches.append(action)
        elif action.dest not in COMMON and action.help != argparse.SUPPRESS:
            rows.append((_argument(action), (action.help or "").replace("%(default)s", str(action.default))))
            usage.append(_usage(action))
    if not branches:
        yield f"```text\n{' '.join([title, *usage])}\n```"
    if rows:
        yield _table(("Argument", "Meaning"), rows)
    for branch in branches:
        texts = {choice.dest: choice.help or "" for choice in branch._choices_actions}
        for name, inner in branch.choices.items():
            text = texts.get(name, inner.description or "")
            sentence = f"**{name}**: {text[:1]}{text[1:]}."
            yield from _parsers(inner, f"{title} {name}", sentence)


def _argument(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option}{f' {value}' if value else ''}`" for option in action.option_strings)


def _usage(action: argparse.Action) -> str:
    value = _value(action)
    if action.option_strings:
        text = f"{action.option_strings[-1]} {value}".strip()
        return text if action.required else f"[{text}]"
    return {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} [...]"}.get(str(action.nargs), value)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()


def _section(name: str) -> Any:
    from django.utils.module_loading import import_string

    from redis_kit.components import BUILTIN

    for path in BUILTIN:
        if path.startswith(f"redis_kit.{name}."):
            return import_string(path).settings
    return import_string(name)


def _comments(section: type) -> dict[str, str]:
    """Return the ``#:`` comment of each option."""
    from sphinx.pycode import ModuleAnalyzer

    docs = ModuleAnalyzer.for_module(section.__module__).find_attr_docs()
    return {
        name: re.sub(r"\s+", " ", " ".join(lines)).replace("``", "`").strip()
        for (owner, name), lines in docs.items()
        if owner == section.__name__
    }


def _described(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(f"`{choice!r}`" for choice in get_args(hint))
    shown = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return f"`{re.sub(r'[a-z_]+[.](?=[A-Za-z])', '', shown).replace('NoneType', 'None')}`"


def _default(field: Field[Any]) -> str:
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    return "required" if value is MISSING else f"`{value!r}`"


def _range(section: Any, name: str) -> str:
    limits = section.ranges.get(name)
    return "" if limits is None else " to ".join(f"{limit:,g}" if limit % 1 else f"{limit:,.0f}" for limit in limits)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> int:
    """Write the pages, or with ``--check`` name those that differ from the code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page has to be written")
    check = parser.parse_args().check
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    different = 0
    for page in sorted(PAGES.rglob("*.md")):
        text = page.read_text()
        if (new := filled(text)) != text:
            different += 1
            print(f"{page.relative_to(ROOT)}{' differs from the code. Run: make reference' if check else ''}")
            check or page.write_text(new)
    return int(check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
