"""Every code block of README and docs runs, or is checked by the names in it."""

import configparser
import json
import re
import tomllib

import pytest
from django.template import engines

from tests.docs.support import console
from tests.docs.support.pages import PAGES, Block, Page, assert_none
from tests.docs.support.runner import Runner

FREE = {"text", "yaml", "dockerfile", "lua", "sql", "nginx", "diff"}  # only the commands in them are checked


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in page.text], ids=lambda page: page.name)
def test_python_blocks_of_a_page_run_in_their_order(page: Page, kit):
    Runner(page, kit).run()


def test_other_blocks_are_valid():
    assert_none(
        f"{page.name}:{block.line}: {problem}"
        for page in PAGES
        for block in page.blocks()
        if (problem := _problem(block))
    )


def _problem(block: Block) -> str:
    if block.reason or block.language == "python":
        return ""
    try:
        match block.language:
            case "console" | "sh" | "bash":
                return "; ".join(filter(None, map(console.problem, console.commands(block.text))))
            case "html":
                engines["django"].from_string(block.text)
            case "json":
                json.loads(block.text)
            case "toml":
                tomllib.loads(block.text)
            case "ini":
                configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(block.text)
            case language if language not in FREE:
                return f"unknown language {language!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "; ".join(_unknown_commands(block.text))


def _unknown_commands(text: str) -> list[str]:
    """Return commands of the kit in other files that do not exist, and options that they do not have."""
    wrong = []
    for line in text.replace("\\\n", " ").splitlines():
        match = re.search(r"\b(rk_\w+)(.*)", line)
        if not match:
            continue
        try:
            parser = console.command(match[1]).create_parser("manage.py", match[1])
        except KeyError:
            wrong.append(f"no command {match[1]}")
            continue
        given = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", match[2]))
        wrong += [f"{match[1]} has no {option}" for option in given - console.options(parser)]
    return wrong
