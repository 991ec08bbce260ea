"""The Chinese messages: complete, not fuzzy, and compiled."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from gettext import GNUTranslations
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation.template import templatize

import redis_kit

PACKAGE = Path(redis_kit.__file__).parent
CATALOGUE = PACKAGE / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
MARKS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
STRING = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
IN_TEMPLATE = re.compile(rf"gettext\({STRING}(?:, {STRING})?")
PLACES = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


def called(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the message of each call that marks one; with its plural where it has one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
            count = 2 if node.func.id.startswith("n") else 1
            yield tuple(ast.literal_eval(one) for one in node.args[:count])


def templated(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the messages of a template."""
    for literals in IN_TEMPLATE.findall(templatize(path.read_text())):
        yield tuple(ast.literal_eval(one) for one in literals if one)


@cache
def in_source() -> set[tuple[str, ...]]:
    python = [one for path in PACKAGE.rglob("*.py") for one in called(path.read_text())]
    return {*python, *(one for path in PACKAGE.rglob("*.html") for one in templated(path))}


@cache
def in_catalogue() -> dict[tuple[str, ...], str]:
    """Return the translations by message, with its plural where it has one."""
    found = {}
    for block in CATALOGUE.read_text().split("\n\n")[1:]:
        words = re.findall(r'^(msgid|msgid_plural|msgstr(?:\[\d\])?) (".*")$', block, re.MULTILINE)
        message = tuple(ast.literal_eval(text) for kind, text in words if kind.startswith("msgid"))
        (found[message],) = [ast.literal_eval(text) for kind, text in words if kind.startswith("msgstr")]
    return found


def test_every_message_of_the_source_is_in_the_catalogue_and_no_other():
    assert len(in_source()) > 50
    assert in_source() == set(in_catalogue())


def test_every_message_is_translated_and_none_is_fuzzy():
    assert [message for message, translated in in_catalogue().items() if not translated] == []
    assert "fuzzy" not in CATALOGUE.read_text()


def test_translations_have_the_placeholders_of_their_messages():
    for message, translated in in_catalogue().items():
        assert sorted(PLACES.findall(translated)) == sorted(PLACES.findall(message[-1])), message


def test_compiled_messages_are_those_of_the_catalogue():
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = GNUTranslations(file)
    for message, translated in in_catalogue().items():
        found = compiled.ngettext(*message, 3) if len(message) == 2 else compiled.gettext(*message)
        assert found == translated
    kept = {key if isinstance(key, str) else key[0] for key in compiled._catalog}  # type: ignore[attr-defined]
    assert kept - {""} == {message[0] for message in in_catalogue()}


@pytest.mark.parametrize(("language", "text"), [("zh-hans", "仪表盘"), ("en", "Dashboard")])
def test_django_finds_the_messages(language, text):
    from redis_kit.models import Dashboard

    with translation.override(language):
        assert str(Dashboard._meta.verbose_name_plural) == text


SHOWN = {"Figure", "Table", "Bars", "Listing", "Field", "Search", "action"}  # what a panel gives to the dashboard
TEXTS = {"label", "title", "hint", "empty", "columns", "asks", "wants", "any", "value"}  # of their arguments
TEMPLATE_CODE = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}|<[^>]*>|&\w+;", re.DOTALL)
NO_WORDS = re.compile(
    r"{% blocktranslate.*?{% endblocktranslate %}|{% block (?:bodyclass|coltype) %}.*?{% endblock %}", re.DOTALL
)


def unmarked(source: str) -> Iterator[str]:
    """Yield the words that a panel shows without a mark: as an argument itself, in an f-string, or in a choice."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHOWN:
            given = [*node.args[node.func.id == "Field" :], *(one.value for one in node.keywords if one.arg in TEXTS)]
            yield from (words for one in given for words in plain(one) if re.search(r"[^\W\d_]{2}", words))


def plain(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.JoinedStr, ast.Tuple, ast.List, ast.IfExp, ast.Starred)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from plain(child)


def test_panels_show_only_messages_that_are_marked():
    files = [path for path in PACKAGE.rglob("*.py") if re.search(r"dashboard|panel", str(path.relative_to(PACKAGE)))]
    assert len(files) > 10
    found = {path.name: words for path in files if (words := [*unmarked(path.read_text())])}
    assert found == {}
    assert [*unmarked('Figure("Ready", 1, hint=f"{n} jobs" if n else _("none"))')] == ["Ready", " jobs"]


def test_templates_have_no_words_beside_their_messages():
    found = {}
    for path in PACKAGE.rglob("*.html"):
        text = TEMPLATE_CODE.sub(" ", NO_WORDS.sub(" ", path.read_text()))
        if words := re.findall(r"[^\W\d_]{2,}", text):
            found[path.name] = words
    assert found == {}
