"""Lua scripts: one file per atomic operation, its header checked when it is loaded."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis_kit.core import flow
from redis_kit.core.errors import NO_NUMBER, KeyConflict
from redis_kit.core.steps import Argument, Command, needs_repair, repaired

STRINGS = {"counter": "string", "bitmap": "string"}
_HOOK = re.compile(r"^ *-- @hook (on_\w+).*\n", re.MULTILINE)
_SECTION = re.compile(r"^-- @on ([\w|]+)\n(.*?)(?=^-- @on |\Z)", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(r"^-- @include (?:([\w.]+):)?(_\w+)(?: with ([\w, ]+))?\n", re.MULTILINE)
_CHECK = re.compile(r"^( *)-- @check_types (.+)$", re.MULTILINE)
_KEY = re.compile(r"^-- KEYS\[(\d+)(\.\.\.)?\] +(\w+)(?: +(\w+))?", re.MULTILINE)
_KEY_KIND = re.compile(r"^-- (\w+) +(\w+.*)$", re.MULTILINE)
_KEYS_OF = re.compile(r"^-- @keys_of ([\w.]+)$", re.MULTILINE)
_NAMED = re.compile(r"^-- @keys (.+)\n", re.MULTILINE)
_PART = re.compile(r"^ *-- @if (not )?([\w|]+)\n(.*?)^ *-- @end \2\n", re.MULTILINE | re.DOTALL)
# Redis answers WRONGTYPE if a key holds another type; a counter that is not a number is refused, too.
_CHECKS = {
    "zset": 'redis.call("ZCARD", %s)',
    "hash": 'redis.call("HLEN", %s)',
    "list": 'redis.call("LLEN", %s)',
    "set": 'redis.call("SCARD", %s)',
    "string": 'redis.call("STRLEN", %s)',
    "counter": 'redis.call("INCRBY", %s, 0)',
    "bitmap": 'redis.call("GETBIT", %s, 0)',
}


class ScriptCall:
    """A step: one run of a script, by its digest. It is sent again with its source if the server has lost it."""

    __slots__ = ("command", "script")

    def __init__(self, script: "Script", command: Command) -> None:
        self.script, self.command = script, command

    def run(self, client: Any) -> Any:
        """Run it: one round trip. A second one if the server has lost the script, and one to name a wrong key."""
        try:
            return client.call(*self.command)
        except Exception as error:
            if not needs_repair(error):
                raise
            return flow.run(self._repaired(error), client)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        try:
            return await client.call(*self.command)
        except Exception as error:
            if not needs_repair(error):
                raise
            return await flow.arun(self._repaired(error), client)

    def _repaired(self, error: Exception) -> flow.Flow[Any]:
        (reply,) = yield from repaired([self], [error])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def with_source(self) -> Command:
        """Return the same call as EVAL, which does not depend on what the server remembers."""
        return ("EVAL", self.script.source, *self.command[2:])

    def types(self) -> list[Command]:
        """Return the commands whose replies named() takes."""
        return [("TYPE", key) for key in self._keys()]

    def named(self, error: KeyConflict, types: list[Any]) -> KeyConflict:
        """Return the error with the name of the key that has a wrong type, if one still has."""
        for key, actual, kind in zip(self._keys(), types, self.script.kinds, strict=False):
            if kind and actual not in (b"none", kind.encode()) and not isinstance(actual, Exception):
                what = f"The key {key!a} is a {actual.decode()} in place of a {kind}: something else wrote to it"
                return KeyConflict(f"{what}. Nothing was changed; rename or delete it.")
        if self.script.counters and any(said in str(error) for said in NO_NUMBER):
            names = " or ".join(ascii(self._keys()[place]) for place in self.script.counters)
            what = f"The counter {names} holds no whole number, or one that is too large: something else wrote to it"
            return KeyConflict(f"{what}. Nothing was changed; rename or delete it.")
        return error

    def _keys(self) -> Command:
        return self.command[3 : 3 + int(self.command[2])]


names: dict[str, str] = {}  # of the scripts that this process has loaded, by digest


class Script:
    """A script and the number of keys that its header names.

    A key with dots after its number stands for any number of keys. A call may leave out the last ones of several.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        names[self.digest] = name
        keys = _KEY.findall(source)
        self.keys = sum(not dots for _place, dots, _name, _kind in keys)
        self.open_ended = self.keys < len(keys)
        kinds = [kind if kind in _CHECKS else "" for _place, _dots, _name, kind in keys]
        self.kinds = [STRINGS.get(kind, kind) for kind in kinds]
        self.counters = [place for place, kind in enumerate(kinds) if kind == "counter"]

    def __call__(self, keys: Sequence[str], args: Sequence[Argument] = ()) -> ScriptCall:
        """Return the step that runs it. Raises TypeError when the number of keys differs from the header's."""
        count = len(keys)
        if count != self.keys and not (self.open_ended and count > self.keys):
            raise TypeError(f"The script {self.name} takes {self.keys} keys, not {count}.")
        return ScriptCall(self, ("EVALSHA", self.digest, count, *keys, *args))


@cache
def load(package: str, name: str, parts: frozenset[str] = frozenset(), hooks: tuple[str, ...] = ()) -> Script:
    """Return the script ``scripts/<name>.lua`` of a component's package.

    - ``-- @include _name`` stands for the text of ``scripts/_name.lua``, which may include others, and
      ``-- @include redis_kit.core.indexes:_name`` for that of another package. ``-- @include _name with begin, finish``
      adds these to its ``parts``.
    - ``-- @keys jobs, ready`` names keys, also those of an include. They are local variables, and the last one may have
      dots, ``results...``: that is the number of the first of any number of keys. ``scripts/_keys.lua`` says what each
      of them holds, and ``-- @keys_of redis_kit.queues.engine`` in it that those of this package can be named, too.
    - ``-- @if lanes`` to ``-- @end lanes`` is there only with this name among ``parts``, ``-- @if lanes|later`` with
      one of these, and ``-- @if not lanes`` without it.
    - ``-- @hook on_end(ids)`` stands for the section of ``scripts/_hooks.lua`` of each package of ``hooks`` that begins
      with ``-- @on on_end``. In brackets are local variables for it. The keys of these packages can be named, too.
    - ``-- @check_types jobs, ready`` stands for one command for each of these keys that fails if the key is not of the
      type that the header names. So a script with several writes is refused before the first of them.
    """
    whole = _with_keys((*hooks, package), _with_includes(package, name, parts, hooks))
    checks = {
        key: _check(whole, place, key, kind) for place, _dots, key, kind in _KEY.findall(whole) if kind in _CHECKS
    }
    checked = _CHECK.sub(lambda match: match[1] + " ".join(checks[key] for key in match[2].split(", ")), whole)
    return Script(f"{package}.{name}", checked)


def _with_includes(package: str, name: str, parts: frozenset[str], hooks: tuple[str, ...]) -> str:
    source = _text(package, name)
    if name == "_hooks":
        sections = _SECTION.findall(source)
        source = "".join(text for places, text in sections if not parts.isdisjoint(places.split("|")))
    while _PART.search(source):
        source = _PART.sub(
            lambda match: match[3] if parts.isdisjoint(match[2].split("|")) == bool(match[1]) else "", source
        )

    def included(match: re.Match[str]) -> str:
        more = match[3].split(", ") if match[3] else ()
        return _with_includes(match[1] or package, match[2], parts.union(more), hooks)

    def filled(match: re.Match[str]) -> str:
        return "".join(f"-- @include {other}:_hooks with {match[1]}\n" for other in hooks)

    source = _HOOK.sub(filled, source)
    return _INCLUDE.sub(included, source)


def _with_keys(packages: Sequence[str], source: str) -> str:
    """Return a script with the keys in its header that it and its includes name."""
    names = list(dict.fromkeys(", ".join(_NAMED.findall(source)).split(", ")))
    if names == [""]:
        return source
    kinds = {name: kind for package in packages for name, kind in _kinds(package).items()}
    names.sort(key=lambda key: key.endswith("..."))
    rows = [f"-- KEYS[{number}] {key} {kinds[key]}\n" for number, key in enumerate(names, 1) if key in kinds]
    header = "".join(rows) + f"local {', '.join(names[: len(rows)])} = unpack(KEYS)\n"
    if len(rows) < len(names):
        last = names[-1].removesuffix("...")
        header += f"-- KEYS[{len(names)}...] {last} \nlocal {last} = {len(names)}\n"
    before, _, after = source.partition("-- @keys ")
    return before + header + _NAMED.sub("", f"-- @keys {after}")


def _kinds(package: str) -> dict[str, str]:
    """Return what keys hold, by name: those of a package, and those of the packages whose includes its scripts use."""
    text = _text(package, "_keys")
    others = [_text(other, "_keys") for other in _KEYS_OF.findall(text)]
    return {name: kind for part in (*others, text) for name, kind in _KEY_KIND.findall(part)}


def _text(package: str, name: str) -> str:
    return (files(package) / "scripts" / f"{name}.lua").read_text(encoding="utf-8")


def _check(source: str, place: str, key: str, kind: str) -> str:
    # A local variable is faster than an entry of the global table.
    is_local = re.search(rf"^local (?:\w+, )*{key}\b", source, re.MULTILINE)
    return _CHECKS[kind] % (key if is_local else f"KEYS[{place}]")
