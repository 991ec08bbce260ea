"""Who may import whom: no circles, no private names of other files, and layers that the linter enforces."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "redis_kit"
MODULES = {
    ".".join((path.parent if path.name == "__init__.py" else path.with_suffix("")).relative_to(ROOT).parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "migrations" not in path.parts
}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
# Private by their names, and documented: of Django's models, of named tuples, of the standard library.
DOCUMENTED = {"_meta", "_state", "_base_manager", "_default_manager", "_replace", "_fields", "_asdict", "_make"}
DOCUMENTED |= {"_exit", "_current_frames", "_getframe", "_get_running_loop"}
DOCUMENTED |= {"_from_testcase"}  # without it a test's own transaction looks like one of the project


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's tree."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, also in functions and for types alone."""
    names = set()
    for node in nodes(MODULES[module]):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in MODULES else node.module
                      for alias in node.names}  # fmt: skip
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names & MODULES.keys() - {module})


@cache
def folder(module: str) -> str:
    """Return the folder of a module. Beside sub-folders each module counts for itself."""
    parent = module if module in PACKAGES else module.rpartition(".")[0]
    has_folders = any(name.rpartition(".")[0] == parent for name in PACKAGES)
    return module if has_folders else parent


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of nodes that all reach each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for following in graph.get(node, ()):
            if following not in index:
                visit(following)
            if following in stack:
                lowest[node] = min(lowest[node], lowest[following])
        if lowest[node] == index[node]:
            at = stack.index(node)
            if len(stack) > at + 1:
                groups.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return groups


def test_files_import_each_other_in_no_circle():
    graph = {module: set(imports(module)) for module in MODULES}
    assert not circles(graph)


def test_folders_import_each_other_in_no_circle():
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        others = {folder(name) for name in imports(module)} - {folder(module)}
        graph.setdefault(folder(module), set()).update(others)
    assert not circles(graph)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def private_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the private names that a file takes from others."""
    own = set(DOCUMENTED)
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("redis_kit"):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("_"))
        elif isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr) and node.attr not in own:
            value = ast.unparse(node.value)
            if value not in ("self", "cls", "super()"):
                yield node.lineno, f"{value}.{node.attr}"


def test_private_names_are_used_in_their_own_file_alone():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in MODULES.values()
        if path.relative_to(PACKAGE).as_posix() != "core/client/wire.py"  # redis-py's private parts, all in one place
        for line, name in private_names(path)
    ]
    assert not wrong


UPWARDS = {
    "plain": "import {0}\n",
    "lazy": "def _later():\n    import {0}\n",
    "type-only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {0}\n",
}
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
WITHOUT_TYPES = SETTINGS["exclude_type_checking_imports"]
KINDS = ["plain", "lazy", pytest.param("type-only", marks=pytest.mark.xfail(WITHOUT_TYPES, reason="not all hold yet"))]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with its contracts."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, root / "redis_kit", ignore=shutil.ignore_patterns("__pycache__", "static", "locale"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env={"PYTHONPATH": str(root)})


def ends_of_layers() -> Iterator[tuple[str, str]]:
    """Yield a module of the lowest layer and one of the highest layer of each contract."""
    for contract in SETTINGS["contracts"]:
        for container in contract["containers"] if contract["type"] == "layers" else ():
            layers = [re.findall(r"\w+", layer) for layer in contract["layers"]]
            named = [[name for name in layer if f"{container}.{name}" in MODULES] for layer in layers]
            highest, *_, lowest = [layer for layer in named if layer]
            yield f"{container}.{lowest[0]}", f"{container}.{highest[0]}"


def test_contracts_are_kept(copy):
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_upward_imports_fail_the_linter(copy, kind):
    before = {}
    try:
        for low, high in ends_of_layers():
            path = copy / MODULES[low].relative_to(ROOT)
            before[path] = path.read_text()
            path.write_text(before[path] + UPWARDS[kind].format(high))
        said = " ".join(lint(copy).stdout.split())
    finally:
        for path, text in before.items():
            path.write_text(text)
    assert before
    assert not [low for low, high in ends_of_layers() if f"{low} -> {high}" not in said]
