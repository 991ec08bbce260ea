"""Commands in console blocks: programs of the project are parsed by their own parsers."""

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from tests.docs.support.pages import ROOT

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SEPARATORS = {"&&", "||", "|", ";", "&"}


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a block: lines after a ``$``, or all lines if none has it."""
    lines = text.replace("\\\n", " ").splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    yield from (line for line in (prompted or lines) if line.strip() and not line.startswith("#"))


def problem(line: str) -> str:
    """Return what is wrong with a command, or nothing."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        return f"{line}: {error}"
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in SEPARATORS:
            command.append(word)
            continue
        if command and (wrong := _problem(command)):
            return f"{line}: {wrong}"
        command = []
    return ""


def _problem(words: list[str]) -> str:
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    if not words:
        return ""
    program, *arguments = words
    program = program.rpartition("/")[2]
    if program in ("sudo", "exec"):
        return _problem(arguments)
    if program == "uv" and arguments[:1] == ["run"]:
        return _problem(arguments[1:])
    if program == "make":
        targets = [word for word in arguments if "=" not in word]
        return "" if set(targets) <= TARGETS else f"no such target: {targets}"
    if program in ("pip", "uv"):
        return _extras(" ".join(arguments))
    if re.fullmatch(r"python[\d.]*", program):
        if arguments[:1] == ["-m"]:
            return _module(arguments[1], arguments[2:])
        return _problem(arguments)
    if program == "django-admin" or program.endswith(".py"):
        return managed(arguments) if program in ("manage.py", "django-admin") else ""
    return ""


def _extras(text: str) -> str:
    named = {extra for match in re.findall(r"(?:django-redis-kit|\.)\[([\w,]+)\]", text) for extra in match.split(",")}
    return "" if named <= EXTRAS else f"no such extra: {named - EXTRAS}"


def _module(name: str, arguments: list[str]) -> str:
    if name == "pip":
        return _extras(" ".join(arguments))
    if name.partition(".")[0] in ("benchmarks", "tests", "redis_kit", "demo") and find_spec(name) is None:
        return f"no module {name}"
    if name == "benchmarks" and arguments:
        main = (ROOT / "benchmarks" / "__main__.py").read_text() + (ROOT / "benchmarks" / "README.md").read_text()
        return "" if arguments[0] in main else f"no benchmark {arguments[0]}"
    return ""


def managed(arguments: list[str]) -> str:
    """Return what the parser of a management command says of its arguments, or nothing."""
    name, *rest = arguments
    try:
        parser = command(name).create_parser("manage.py", name)
        parser.parse_args(rest)
    except (CommandError, KeyError, ModuleNotFoundError, SystemExit) as error:
        return "" if "--help" in rest else f"{type(error).__name__}: {error}"
    return ""


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a parser and of its actions."""
    names = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            names = names.union(*map(options, action.choices.values()))
    return names


def command(name: str) -> BaseCommand:
    """Return a management command of the kit, of Django or of the demo."""
    if name == "rk_demo":
        return import_module("demo.management.commands.rk_demo").Command()
    app = get_commands()[name]
    found = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    found._called_from_command_line = False
    return found
