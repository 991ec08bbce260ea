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

INCLUDES = sorted(PACKAGE.rglob("scripts/_*.lua"))
CONVERTED = {"queues"}  # components whose includes hold to the rules below; it goes when all do
LUA = set(
    """
    and break do else elseif end false for function if in local nil not or repeat return then true until while
    _ assert bit cjson error ipairs math next pairs pcall redis select string struct table tonumber tostring type unpack
    """.split()  # noqa: SIM905 - as a list it takes 40 lines
)
TOKEN = re.compile(r"--[^\n]*|\"(?:\\.|[^\"\\])*\"|\d[\w.]*|[A-Za-z_]\w*|\.{2,3}|[=~<>]=|\S")
TOP_LEVEL = re.compile(
    r"local function |function \w+\.\w+|end$|--|[\w.]+ = \{$|local \w+ = \{$|\}$"
    r"|local [\w, ]+ = (?!.*(KEYS|ARGV|redis|\())|$"
)


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


def test_includes_define_functions_and_say_what_they_need_and_give():
    wrong = []
    for path in _converted(INCLUDES):
        header, body = _parts(path)
        needs, gives = _listed(header, "needs"), _listed(header, "gives")
        wrong += [
            f"{path.name}: {line}" for line in body.splitlines() if line[:1].strip() and not TOP_LEVEL.match(line)
        ]
        if needs != _free_names(body):
            wrong.append(f"{path.name} needs {', '.join(sorted(_free_names(body))) or 'nothing'}")
        if gives != _given(body):
            wrong.append(f"{path.name} gives {', '.join(sorted(_given(body)))}")
    assert not wrong


def test_script_has_what_its_includes_need_and_uses_what_they_give():
    wrong, gives = [], {path.stem: _listed(_parts(path)[0], "gives") for path in _converted(INCLUDES)}
    needs = {path.stem: _listed(_parts(path)[0], "needs") for path in _converted(INCLUDES)}
    for path in _converted(SCRIPTS):
        included = re.findall(r"^-- @include (_\w+)$", path.read_text(), re.MULTILINE)
        body = _parts(path)[1]
        used = _free_names(body).union(*(needs[name] for name in included))
        wrong += [f"{path.name} uses nothing of {name}" for name in included if not gives[name] & used]
        above = {"KEYS", "ARGV"}
        for line in body.splitlines():
            if found := re.match(r"-- @include (_\w+)$", line):
                if missing := needs[found[1]] - above:
                    wrong.append(f"{path.name}: above {found[1]} there is no {', '.join(sorted(missing))}")
                above |= gives[found[1]]
            elif found := re.match(r"local (?:function )?([\w, ]+)", line):
                above |= {name.strip() for name in found[1].split(",")}
    assert not wrong


def test_keys_whose_types_are_checked_are_in_the_header_with_their_types():
    wrong = []
    for path in SCRIPTS:
        header, body = _parts(path)
        for key in re.findall(r"\w+", " ".join(re.findall(r"-- @check_types (.+)", body))):
            if not re.search(rf"^-- KEYS\[\d+\] +{key} +(zset|hash|list|set|string|counter)\b", header, re.MULTILINE):
                wrong.append(f"{path.name}: {key} is not in the header with its type")
            if not re.search(rf"^local .*\b{key}\b.* = ", body, re.MULTILINE):
                wrong.append(f"{path.name}: no local is {key}")
    assert not wrong


def _converted(paths):
    return [path for path in paths if path.relative_to(PACKAGE).parts[0] in CONVERTED]


def _listed(header, word):
    """Return the names after ``-- needs`` or ``-- gives``, which may go on in the next line."""
    found = re.search(rf"^-- {word} +(.*(?:\n--    +.*)*)", header, re.MULTILINE)
    names = set(re.findall(r"[\w.]+", found[1])) if found else {f"no line with {word}"}
    return names - {"nothing"}


def _given(body):
    """Return the functions that an include defines, and the tables of such."""
    return {
        name
        for pair in re.findall(r"^(?:local )?function ([\w.]+)|^([\w.]+) = \{$", body, re.MULTILINE)
        for name in pair
        if name
    }


def _free_names(body):
    """Return the names that a piece of Lua uses and does not define."""
    tokens = [token for token in TOKEN.findall(body) if not token.startswith(("--", '"'))]
    used, defined, at = set(), set(), 0
    while at < len(tokens):
        token, before, after = tokens[at], tokens[at - 1] if at else "", tokens[at + 1 : at + 2]
        ends = {"local": ("=",), "for": ("=", "in"), "function": (")",)}.get(token)
        if token == "local" and after == ["function"]:
            defined.add(tokens[at + 2])
        elif ends:
            while token == "function" and tokens[at + 1] != "(":  # its name
                at += 1
            while tokens[at + 1] not in ends:
                at += 1
                comma = tokens[at] in {",", "("}
                if not comma and token == "local" and tokens[at - 1] not in {",", "local"}:
                    at -= 1  # "local name" without a value
                    break
                defined |= set() if comma else {tokens[at]}
        elif (
            re.match(r"[A-Za-z_]", token) and before not in {".", ":"} and not (after == ["="] and before in {"{", ","})
        ):
            used.add(token)
        at += 1
    return used - defined - LUA


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
