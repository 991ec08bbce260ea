"""The house rules that a machine can check."""

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from redis_kit.core.component import components

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "redis_kit"
SCRIPTS = sorted(PACKAGE.rglob("scripts/[!_]*.lua"))  # an include has no header of its own
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)
NAMES = [path.relative_to(PACKAGE).as_posix() for path in SCRIPTS]
READS = "TIME|GET|HGET|HMGET|HLEN|ZSCORE|ZCARD|ZRANGE|ZCOUNT|LLEN|LRANGE|EXISTS|TYPE|PTTL|PFCOUNT|BITFIELD_RO|BITCOUNT"
WRITES = re.compile(rf'redis\.call\("(?!({READS}))[A-Z]')


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_script_names_the_keys_and_arguments_that_it_uses(path):
    header, body = _parts(path)
    for kind in ("KEYS", "ARGV"):
        named = {int(number) for number in re.findall(rf"^-- {kind}\[(\d+)", header, re.MULTILINE)}
        used = {int(number) for number in re.findall(rf"{kind}\[(\d+)\]", body)}
        assert used <= named, f"{kind} {sorted(used - named)} are used and not in the header"
        assert named == set(range(1, len(named) + 1))
    assert "-- returns" in header


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_script_takes_time_from_the_server_and_does_nothing_unbounded(path):
    _, body = _parts(path)
    assert not re.search(r'"(KEYS|SCAN|FLUSHDB|FLUSHALL|SMEMBERS|EVAL)"', body)
    assert "cjson" not in body
    assert "while true" not in body
    assert len(path.read_text().splitlines()) <= 100


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_script_that_writes_is_refused_before_its_first_write_on_a_full_server(path):
    if WRITES.search(_parts(path)[1]):
        assert path.read_text().startswith("#!lua")


def _parts(path):
    lines = path.read_text().splitlines()
    rest = next(place for place, line in enumerate(lines) if line and not line.startswith(("--", "#!")))
    return "\n".join(lines[:rest]), "\n".join(lines[rest:])


@pytest.mark.parametrize("component", components(), ids=lambda component: component.label)
def test_component_has_a_panel_a_page_and_tests(component):
    page = ROOT / "docs" / "components" / f"{component.label}.md"
    assert page.exists()
    assert (ROOT / "tests" / component.label).is_dir()
    assert component.label == "dashboard" or component.load_panels()


@pytest.mark.parametrize("component", components(), ids=lambda component: component.label)
def test_every_option_is_in_the_docs(component):
    page = (ROOT / "docs" / "components" / f"{component.label}.md").read_text()
    generated = "```{options}" in page
    assert all(generated or field.name in page for field in dataclasses.fields(component.settings))


def _public_classes():
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if "/core/" in str(path) or not re.search(r"^    async def a", path.read_text(), re.MULTILINE):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield pytest.param(node, id=f"{module}.{node.name}")


@pytest.mark.parametrize("found", list(_public_classes()))
def test_twins_have_the_same_signature(found):
    methods = {node.name: node for node in found.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for name, method in methods.items():
        if isinstance(method, ast.AsyncFunctionDef) and name.startswith("a") and name[1:] in methods:
            assert ast.unparse(method.args) == ast.unparse(methods[name[1:]].args), f"{found.name}.{name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_public_things_have_docstrings(path):
    tree = ast.parse(path.read_text())
    assert not path.read_text() or ast.get_docstring(tree) or path.name == "__init__.py"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            overload = any(ast.unparse(one) == "overload" for one in node.decorator_list)
            assert overload or ast.get_docstring(node), f"{node.name} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_file_is_short(path):
    assert len(path.read_text().splitlines()) <= 300


def test_nothing_unpickles_or_evaluates():
    for path in MODULES:
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        imported = re.findall(r"^\s*(?:import|from) (pickle|marshal|shelve|yaml)", path.read_text(), re.MULTILINE)
        assert not imported, path
        assert not names & {"eval", "exec"}, path


def test_sections_are_frozen_dataclasses():
    for component in components():
        assert dataclasses.is_dataclass(component.settings)
        assert inspect.getdoc(component.settings)
