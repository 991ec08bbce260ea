"""A program is a module with a ``Plan``, whose fields are its arguments, and ``run(plan)`` returns an outcome."""

import argparse
import ast
import difflib
import json
import logging
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
SHOWN, LENGTH = 20, 500  # violations, and characters of one
SCALARS = (int, float, str, bool)  # the types of fields that are arguments
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE"}}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be run. A field without a default, and the first one, is an argument, the others are options."""

    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))


def option(default: Any, help: str, **how: Any) -> Any:
    """Return a field with a help text and other arguments of argparse."""
    return field(default=default, metadata={"help": help, **how})


class Outcome:
    """The figures of a run, and by its kind what must not be. ``facts`` are for tests."""

    def __init__(self, figures: str, found: Mapping[str, Sequence[str]], *, logs: str = "", **facts: Any) -> None:
        self.figures, self.found, self.logs, self.facts = figures, found, logs, facts

    @property
    def violations(self) -> list[str]:
        """Return all that must not be."""
        return [text for texts in self.found.values() for text in texts]

    def __str__(self) -> str:
        counts = ", ".join(f"{len(texts)} {kind}" for kind, texts in self.found.items())
        return "\n  ".join([f"{self.figures}\n{counts}", *(text[:LENGTH] for text in self.violations[:SHOWN])])

    def check(self) -> None:
        """Print the figures; fail if there are violations."""
        print(self)
        assert not self.violations, f"{self}\n{self.logs[-4000:]}"


def programs() -> dict[str, str]:
    """Return the names of all programs, with the first lines of their docstrings."""
    found = {}
    for path in sorted(FOLDER.glob("*/*.py")):
        text = path.read_text()
        if "\nclass Plan(" in text and path.parent.name != "engine":
            found[f"{path.parent.name}.{path.stem}"] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the named program, and return the exit code: 1 after a violation."""
    known = programs()
    listed = "\n".join(f"  {name:30} {text}" for name, text in known.items())
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: python -m tests.chaos NAME [ARGUMENTS]\n\n{listed}\n\nNAME --help lists the arguments of one.")
        return 0 if arguments else 2
    name, *rest = arguments
    if name == "--as":
        return act(*rest)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        print(f"There is no program {name}.{hint} Choose from:\n{listed}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an orderly exit ends servers and processes too
    with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder:
        set_up({**SQLITE, "NAME": f"{folder}/db"})
        module, began = import_module(f"tests.chaos.{name}"), time.monotonic()
        plan = module.Plan(**vars(parser(name, module).parse_args(rest)))
        outcome: Outcome = module.run(plan)
        print(f"{name}, seed {plan.seed}, {time.monotonic() - began:.1f} s: {outcome}", flush=True)
        if outcome.facts.get("stuck"):  # threads never end
            os._exit(bool(outcome.violations))
    return int(bool(outcome.violations))


def set_up(database: Mapping[str, Any]) -> None:
    """Set Django up with the settings of the tests, with a database that all processes share."""
    import django
    from django.test.utils import setup_test_environment

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    os.environ.setdefault("TEST_DATABASE", json.dumps(database))
    django.setup()
    setup_test_environment()  # so that indexes and filters of models need not be made in models.py
    logging.getLogger("redis_kit").setLevel(logging.CRITICAL)  # that servers are away is meant to happen


def parser(name: str, module: Any) -> argparse.ArgumentParser:
    """Return the parser of a program's arguments."""
    found = argparse.ArgumentParser(
        prog=f"python -m tests.chaos {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own = [one for one in fields(module.Plan) if one.type in SCALARS]
    own.sort(key=lambda one: one.name == "seed")
    for place, one in enumerate(own):
        is_needed = one.default is MISSING and one.default_factory is MISSING
        _add(found, one, positional=one.name != "seed" and (is_needed or not place))
    return found


def _add(found: argparse.ArgumentParser, one: Field[Any], *, positional: bool) -> None:
    default = argparse.SUPPRESS if one.default is MISSING else one.default
    how: dict[str, Any] = {"help": "", "default": default, "type": one.type, **one.metadata}
    if default not in ("", False, argparse.SUPPRESS):
        how["help"] += f" (default: {default})"
    if positional:
        found.add_argument(one.name, **how, nargs=None if default is argparse.SUPPRESS else "?")
    elif one.type is bool:
        found.add_argument(f"--{one.name.replace('_', '-')}", action="store_true", help=how["help"])
    else:
        found.add_argument(f"--{one.name.replace('_', '-')}", **how)


def act(function: str, arguments: str) -> int:
    """Be a process that a stage has started: call the function of a module, as in ``tests.chaos.a.b:function``."""
    import django

    django.setup()
    module, _, name = function.partition(":")
    getattr(import_module(module), name)(*json.loads(arguments))
    return 0
