"""The house rules that a machine can check."""

import ast
import dataclasses
import inspect
import itertools
import re
from functools import cache
from pathlib import Path

import pytest

from redis_kit.core import scripts
from redis_kit.core.component import components
from redis_kit.queues.engine.feature import all_parts, script_hooks

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "redis_kit"
SCRIPTS = sorted(PACKAGE.rglob("scripts/[!_]*.lua"))  # an include has no header of its own
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OUTSIDE = {"management", "templatetags"}  # Django says what is in these folders
# A module is no action, though its name may end like one.
VERB = re.compile(r"ing$|(?<!e)ed$|^(ask|tell|find|examine|leave|drop|give|take|keep|put|make|move)$")
NOUNS = {"embedded", "fencing", "masking", "recycling", "rendering", "shared", "testing", "throttling"}
NOUNS |= {"acquiring", "locked", "tracing"}  # what a lock does, the name of a decorator, spans
READS = "TIME|GET|HGET|HMGET|HLEN|ZSCORE|ZCARD|ZRANGE|ZCOUNT|LLEN|LRANGE|EXISTS|TYPE|PTTL|PFCOUNT|BITFIELD_RO|BITCOUNT"
WRITES = re.compile(rf'redis\.call\("(?!({READS}))[A-Z]')
# JSON of an argument is bounded by the caller.
UNBOUNDED = re.compile(r'"(?:KEYS|SCAN|FLUSHDB|FLUSHALL|SMEMBERS|EVAL)"|cjson(?!\.decode\(ARGV)|while true')
ALL = ("lanes", *all_parts())
CLAIM = [(), ALL, ("later",), ("later", "lanes"), ("paused", "repeats"), ("again",), ("again", "repeats", "lanes")]
CLAIM += [("rules",), ("rules", "lanes"), ("rules", "lanes", "later", "again")]
SETTLE = [(), ALL, ("any", "bury", "delay"), (*ALL, "any", "bury", "delay", "unfit"), (*ALL, "rules")]
PUT = [
    (),
    ("delayed",),
    ("lane",),
    ("lane", "delayed"),
    ("once",),
    ("once", "delayed"),
    (*ALL, "once", "used", "lane", "delayed"),
    (*ALL, "used"),
    (*ALL, "used", "lane", "delayed"),
]
GET = [(), ALL, (*ALL, "details")]
VARIANTS = {"ack_and_claim": CLAIM, "settle": SETTLE, "put": PUT, "get_job": GET}  # the parts of which scripts are made
INCLUDES = sorted(path for path in PACKAGE.rglob("scripts/_*.lua") if path.name not in ("_keys.lua", "_hooks.lua"))
LUA = set(
    """
    and break do else elseif end false for function if in local nil not or repeat return then true until while
    _ assert bit cjson error ipairs math next pairs pcall redis select string struct table tonumber tostring type unpack
    """.split()  # noqa: SIM905 - as a list it takes 40 lines
)
KINDS = "zset|hash|list|set|string|counter|bitmap"
TOKEN = re.compile(r"--[^\n]*|\"(?:\\.|[^\"\\])*\"|\d[\w.]*|[A-Za-z_]\w*|\.{2,3}|[=~<>]=|\S")
TOP_LEVEL = re.compile(
    r"local function |function \w+\.\w+|end$|--|[\w.]+ = \{$|local \w+ = \{$|\}$"
    r"|local [\w, ]+ = (?!.*(KEYS|ARGV|redis|\())|$"
)


def test_script_names_the_keys_and_arguments_that_it_uses():
    wrong = []
    for path in SCRIPTS:
        header, body = _parts(path)
        for kind in ("KEYS", "ARGV"):
            named = {int(number) for number in re.findall(rf"^-- {kind}\[(\d+)", header, re.MULTILINE)}
            used = {int(number) for number in re.findall(rf"{kind}\[(\d+)\]", body)}
            wrong += [f"{_name(path)}: {kind}[{number}] is not in the header" for number in sorted(used - named)]
            if named != set(range(1, len(named) + 1)):
                wrong.append(f"{_name(path)}: {kind} are not numbered from 1 without gaps")
        if "-- returns" not in header:
            wrong.append(f"{_name(path)}: the header does not say what it returns")
    assert not wrong


def test_script_takes_time_from_the_server_and_does_nothing_unbounded():
    wrong = []
    for path in SCRIPTS:
        body = _parts(path)[1]
        wrong += [f"{_name(path)}: {word}" for word in re.findall(UNBOUNDED, body)]
    assert not wrong


def test_script_that_writes_is_refused_as_a_whole_on_a_full_server():
    writing = [path for path in SCRIPTS if WRITES.search(_parts(path)[1]) and path.name != "queue_stats.lua"]
    assert writing  # that one looks whether writes are refused
    assert not [_name(path) for path in writing if not path.read_text().startswith("#!lua")]


def test_includes_define_functions_and_say_what_they_need_and_give():
    wrong, all_needs, all_gives = [], {}, {}
    for path in INCLUDES:
        all_needs[path.stem], all_gives[path.stem] = (_listed(_parts(path)[0], word) for word in ("needs", "gives"))
    for path in INCLUDES:
        body, needs, gives = _parts(path)[1], all_needs[path.stem], all_gives[path.stem]
        used, given = _free_names(body) - _keys(path), _given(body)
        for name in re.findall(r"^-- @include (?:[\w.]+:)?(_\w+)", body, re.MULTILINE):
            used |= all_needs[name]
            given |= all_gives[name]
        wrong += [
            f"{path.name}: {line}" for line in body.splitlines() if line[:1].strip() and not TOP_LEVEL.match(line)
        ]
        if needs != used - given:
            wrong.append(f"{path.name} needs {', '.join(sorted(used - given)) or 'nothing'}")
        if not gives <= given:
            wrong.append(f"{path.name} gives {', '.join(sorted(_given(body)))}, of {', '.join(sorted(given))}")
    assert not wrong


def test_each_hook_is_filled_by_a_feature_and_each_part_has_a_hook():
    texts = [path.read_text() for path in PACKAGE.rglob("scripts/*.lua")]
    hooks, parts = (
        set(re.findall(rf"^ *-- @{word} (on_\w+)", "\n".join(texts), re.MULTILINE)) for word in ("hook", "on")
    )
    assert hooks == parts


def test_script_uses_what_its_includes_give():
    wrong, gives = [], {path.stem: _listed(_parts(path)[0], "gives") for path in INCLUDES}
    needs = {path.stem: _listed(_parts(path)[0], "needs") for path in INCLUDES}
    for path in SCRIPTS:
        included = re.findall(r"^-- @include (?:[\w.]+:)?(_\w+)", path.read_text(), re.MULTILINE)
        used = _free_names(_parts(path)[1]).union(*(needs[name] for name in included))
        wrong += [f"{path.name} uses nothing of {name}" for name in included if not gives[name] & used]
    assert not wrong


# Those of throttling are put together from the algorithms of the rules.
@pytest.mark.parametrize(
    "path", [path for path in SCRIPTS if "throttling" not in path.parts], ids=lambda path: path.stem
)
def test_script_of_any_parts_defines_all_that_it_uses_above(path):
    package = ".".join(path.relative_to(ROOT).parent.parent.parts)
    wrong = set()
    for parts in VARIANTS.get(path.stem, [(), ALL]):
        source = re.sub(
            r"^#!.*", "", scripts.load(package, path.stem, frozenset(parts), script_hooks(frozenset(parts))).source
        )
        lines = [re.sub(r"--.*", "", line) for line in source.splitlines()]
        wrong |= {f"{name} is never defined" for name in _free_names("\n".join(lines)) - {"KEYS", "ARGV"}}
        defined = set()
        for number, line in enumerate(lines):
            if found := re.match(r"local (?:function )?([\w, ]+)", line):
                for name in {name.strip() for name in found[1].split(",")} - defined - {"_"}:
                    defined.add(name)
                    above = "\n".join(lines[:number])
                    if re.search(rf"\b{name}\b", above) and name in _free_names(f"{above} return = in )"):
                        wrong.add(f"{name} is used above its definition")
    assert not wrong


def test_keys_whose_types_are_checked_are_in_the_header_with_their_types():
    wrong = []
    for path in SCRIPTS:
        header, body = _parts(path)
        declared, named = path.with_name("_keys.lua"), _keys(path)
        if named:
            texts = [
                _scripts_of(package, path) / f"{name}.lua"
                for package, name in re.findall(r"-- @include (?:([\w.]+):)?(_\w+)", body)
            ]
            assert declared.exists(), f"{path.name} names keys, and its folder has no _keys.lua"
            named |= {key for text in texts for key in _keys(text)}
            header = "\n".join(f"-- KEYS[1] {key} {_kinds(declared).get(key, '')}" for key in named)
        for key in re.findall(r"\w+", " ".join(re.findall(r"-- @check_types (.+)", body))):
            if not re.search(rf"^-- KEYS\[\d+[.]*\] +{key} +({KINDS})\b", header, re.MULTILINE):
                wrong.append(f"{path.name}: {key} is not in the header with its type")
    assert not wrong


def _listed(header, word):
    """Return the names after ``-- needs`` or ``-- gives``, which may go on in the next line."""
    found = re.search(rf"^-- {word} +(.*(?:\n--    +.*)*)", header, re.MULTILINE)
    names = set(re.findall(r"[\w.]+", found[1])) if found else {f"no line with {word}"}
    return names - {"nothing"}


def _keys(path):
    """Return the keys that a script or an include names, if it is in the folder of the one that includes it."""
    text = path.read_text() if path.exists() else ""
    return set(re.findall(r"\w+", " ".join(re.findall(r"^-- @keys (.+)", text, re.MULTILINE))))


def _kinds(path):
    text = path.read_text()
    others = re.findall(r"^-- @keys_of ([\w.]+)$", text, re.MULTILINE)
    texts = [*((_scripts_of(package, path) / "_keys.lua").read_text() for package in others), text]
    return dict(re.findall(r"^-- (\w+) +(\w+.*)$", "\n".join(texts), re.MULTILINE))


def _scripts_of(package, path):
    """Return the folder of the scripts of a package; that of this script without a package."""
    return ROOT.joinpath(*package.split("."), "scripts") if package else path.parent


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
    body = re.sub(r"-- @hook \w+\(", "_(", body)
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


def _name(path):
    return path.relative_to(PACKAGE).as_posix()


@cache
def _tree(path):
    return ast.parse(path.read_text())


def test_component_has_a_panel_a_page_and_tests():
    wrong = []
    for component in components():
        if not (ROOT / "docs" / "topics" / component.label / "index.md").exists():
            wrong.append(f"{component.label}: no page in the docs")
        if not (ROOT / "tests" / component.label).is_dir():
            wrong.append(f"{component.label}: no tests")
        if component.label != "dashboard" and not component.load_panels():
            wrong.append(f"{component.label}: no panel")
    assert not wrong


def test_sections_are_frozen_dataclasses():
    sections = [component.settings for component in components()]
    assert not [one for one in sections if not (dataclasses.is_dataclass(one) and inspect.getdoc(one))]


def test_twins_have_the_same_signature():
    wrong = []
    for path in MODULES:
        if path.is_relative_to(PACKAGE / "core"):
            continue
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                wrong += [f"{_name(path)}: {node.name}.{name}" for name in _unequal_twins(node)]
    assert not wrong


def _unequal_twins(node):
    methods = {method.name: method for method in node.body if isinstance(method, FUNCTIONS)}
    for name, method in methods.items():
        if isinstance(method, ast.AsyncFunctionDef) and name.startswith("a") and name[1:] in methods:
            twin = methods[name[1:]]
            yield from [name] if ast.unparse(method.args) != ast.unparse(twin.args) else []


def test_operations_have_twins():
    wrong = []
    for path in MODULES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef | ast.Module):
                assigned = {ast.unparse(one) for one in node.body if isinstance(one, ast.Assign)}
                names = [one.name for one in node.body if isinstance(one, FUNCTIONS) and _is_operation(one)]
                wrong += [f"{_name(path)}: {name}" for name in names if f"a{name} = twin({name})" not in assigned]
    assert not wrong


def _is_operation(function):
    return any(ast.unparse(decorator).split("(")[0] == "operation" for decorator in function.decorator_list)


def test_public_things_have_docstrings():
    wrong = []
    for path in MODULES:
        tree = _tree(path)
        if tree.body and path.name != "__init__.py" and not ast.get_docstring(tree):
            wrong.append(_name(path))
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and not node.name.startswith("_"):
                overload = any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
                if not overload and not ast.get_docstring(node):
                    wrong.append(f"{_name(path)}: {node.name}")
    assert not wrong


def test_nothing_unpickles_or_evaluates():
    wrong = []
    for path in MODULES:
        names = {node.id for node in ast.walk(_tree(path)) if isinstance(node, ast.Name)}
        names |= set(re.findall(r"^\s*(?:import|from) (pickle|marshal|shelve|yaml)", path.read_text(), re.MULTILINE))
        wrong += [f"{_name(path)}: {name}" for name in names & {"eval", "exec", "pickle", "marshal", "shelve", "yaml"}]
    assert not wrong


def test_module_is_named_with_a_noun():
    names = {path: (path.parent if path.name == "__init__.py" else path).stem for path in MODULES}
    wrong = [_name(path) for path, name in names.items() if name not in NOUNS and VERB.search(name)]
    assert not wrong


def test_modules_of_a_folder_differ_by_more_than_a_letter():
    wrong = []
    for folder in {path.parent for path in MODULES}:
        names = sorted(path.stem for path in MODULES if path.parent == folder and path.name != "__init__.py")
        pairs = itertools.combinations(names, 2)
        wrong += [f"{_name(folder)}: {name}, {other}" for name, other in pairs if _is_a_letter_apart(name, other)]
    assert not wrong


def _is_a_letter_apart(name, other):
    short, long = sorted((name, other), key=len)
    without = [long[:at] + long[at + 1 :] for at in range(len(long))]
    return short in without or any(short[:at] + short[at + 1 :] == without[at] for at in range(len(short)))


def test_test_has_a_name_of_at_most_70_characters():
    wrong = []
    for path in TESTS:
        names = re.findall(r"^\s*(?:async )?def (test_\w{66,})", path.read_text(), re.MULTILINE)
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name in names]
    assert not wrong


def test_tests_are_in_the_folders_of_what_they_test():
    labels = {"core", "testing", *(component.label for component in components())}
    wrong = []
    for path in TESTS:
        parts = path.relative_to(ROOT / "tests").parent.parts
        if parts and parts[0] in labels and not PACKAGE.joinpath(*parts).is_dir():
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


def test_folder_of_modules_has_a_folder_of_tests():
    wrong = []
    for folder in {path.parent for path in MODULES if path.name != "__init__.py"}:
        parts = folder.relative_to(PACKAGE).parts
        has_tests = any(ROOT.joinpath("tests", *parts).glob("test_*.py"))
        if parts and not has_tests and parts[0] not in OUTSIDE:
            wrong.append(_name(folder))
    assert not wrong


def test_folder_map_in_the_docs_has_all_folders():
    listed, parents = set(), []
    block = (ROOT / "docs" / "explanation" / "architecture.md").read_text().split("## Folder map")[1].split("```")[1]
    for line in block.splitlines():
        for name in re.findall(r"(?:^ *|/ )(\w+)(?=/)", line):
            depth = (len(line) - len(line.lstrip())) // 2
            parents[depth:] = [name]
            listed.add("/".join(parents))
    listed |= {"redis_kit/management/commands"}
    folders = {path.parent.relative_to(ROOT).as_posix() for path in [*MODULES, *SCRIPTS]}
    assert folders | {"redis_kit/migrations"} == {name for name in listed if name.startswith("redis_kit")}
    assert all((ROOT / name).is_dir() for name in listed)
