"""The ``REDIS_KIT`` setting: one frozen dataclass per section, checked, and live under ``override_settings``."""

import math
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import did_you_mean, number


class Problem(NamedTuple):
    """A problem of the settings: a check id (``E002``), a description and a way out."""

    id: str
    message: str
    hint: str = ""

    @property
    def text(self) -> str:
        """Return both in one text, for an error."""
        return f"{self.message} {self.hint}".strip()

    @property
    def check_message(self) -> CheckMessage:
        """Return the message of a system check: a warning if the id begins with ``W``, else an error."""
        kind = Warning if self.id.startswith("W") else Error
        return kind(self.message, hint=self.hint or None, id=f"redis_kit.{self.id}")


@dataclass(frozen=True)
class Section:
    """One part of ``REDIS_KIT``. A field is an option: its name, type and default are stated once, here."""

    # the key in REDIS_KIT, "" for its top; a section inside another one states none
    name: ClassVar[str] = ""
    # option -> (least, most), for numbers
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    # option -> what to write, for the message about a value of a wrong type
    examples: ClassVar[Mapping[str, str]] = {}
    # options whose value no message shows
    secrets: ClassVar[tuple[str, ...]] = ()
    # value of ON_FAILURE -> what it means for callers, for the log
    policies: ClassVar[Mapping[str, str]] = {}

    def problems(self) -> Iterator[Problem]:
        """Yield the problems that types and ranges don't show.

        An option whose type or range is wrong has its default here. Problems that name it are left out.
        """
        return iter(())


AnySection = TypeVar("AnySection", bound=Section)

_cache: dict[type[Section], Any] = {}
_types: dict[type[Section], dict[str, Any]] = {}  # of the options
_substitute: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


def section(kind: type[AnySection]) -> AnySection:
    """Return the current values of a section.

    Read it at the moment of use and never keep it. Raises ConfigurationError on the first wrong key or value.
    """
    values: AnySection | None = _cache.get(kind)
    if values is None:
        for problem in problems(kind):
            raise ConfigurationError(problem.text)
        values = _cache[kind] = kind(**given(kind))
    return values


def is_function(path: str) -> bool:
    """Tell whether a dotted path names a function."""
    try:
        return callable(import_string(path))
    except ImportError:
        return False


def configured() -> Mapping[str, Any]:
    """Return the ``REDIS_KIT`` setting; empty if it is missing or not a dict."""
    given = getattr(settings, "REDIS_KIT", {}) if is_dict() else {}
    return _substitute(given) if _substitute else given


def substitute(function: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None) -> None:
    """Pass the setting through a function, also under ``override_settings``; None ends this. Only for tests."""
    global _substitute
    _substitute = function
    _cache.clear()


def on_change(forget: Callable[[], object], *names: str) -> None:
    """Call ``forget`` when one of these settings changes, or ``REDIS_KIT`` if none is named.

    That is under ``override_settings``; for ``REDIS_KIT`` between two tests of a project, too.
    """

    def receive(*, setting: str, **kwargs: Any) -> None:
        if setting in (names or ("REDIS_KIT",)):
            forget()

    setting_changed.connect(receive, weak=False)


def tests_run() -> bool:
    """Tell whether Django's environment for tests is set up, as ``manage.py test`` and pytest-django do."""
    module = sys.modules.get("django.test.utils")
    return hasattr(getattr(module, "_TestState", None), "saved_data")


@cache
def warn_unless_installed() -> None:
    """Warn, once in a process, if ``redis_kit`` is missing from ``INSTALLED_APPS``. Nothing else would show it."""
    if apps.ready and not apps.is_installed("redis_kit"):
        wrong = "'redis_kit' is missing from INSTALLED_APPS: its commands, checks, signals and dashboard do not work."
        warnings.warn(wrong, RuntimeWarning, stacklevel=3)


def is_dict() -> bool:
    """Tell whether the ``REDIS_KIT`` setting is a dict, or not there."""
    return isinstance(getattr(settings, "REDIS_KIT", {}), Mapping)


def not_a_dict() -> Problem:
    """Return the problem of a ``REDIS_KIT`` setting that is not a dict."""
    wrong = f"REDIS_KIT is {described_value(settings.REDIS_KIT)}; it must be a dict."
    return Problem("E002", wrong, "Write {'CONNECTIONS': {'default': {'URL': 'redis://localhost:6379/0'}}}.")


def given(kind: type[Section]) -> dict[str, Any]:
    """Return the options that the project set in a section."""
    if kind.name:
        return dict(configured().get(kind.name) or {})
    return {name: value for name, value in configured().items() if name in options(kind)}


def options(kind: type[Section]) -> tuple[str, ...]:
    """Return the names of a section's options."""
    return tuple(field.name for field in fields(kind))


def problems(kind: type[Section]) -> Iterator[Problem]:
    """Yield everything wrong with one section."""
    where = _place(kind)
    if not is_dict():
        yield not_a_dict()
        return
    if not isinstance(whole := configured().get(kind.name, {}), Mapping):
        hint = f"Leave it out, or write a dict with some of its options: {', '.join(sorted(options(kind)))}."
        yield Problem("E002", f"{where} is {described_value(whole)}; it must be a dict.", hint)
        return
    values = given(kind)
    yield from mismatches(kind, where, values)
    right = without_mismatches(kind, values)
    wrong = values.keys() - right.keys()
    for problem in kind(**right).problems():
        if not any(re.search(rf"\b{re.escape(str(name))}\b", problem.message) for name in wrong):
            yield problem


def valid_options(kind: type[AnySection]) -> AnySection:
    """Return a section for checks, with the default in place of each option of a wrong type or out of range."""
    right = is_dict() and isinstance(configured().get(kind.name, {}), Mapping)
    return kind(**(without_mismatches(kind, given(kind)) if right else {}))


def without_mismatches(kind: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a dict that are options of a section, with a right type and range."""
    return {name: value for name, value in values.items() if not any(mismatches(kind, "", {name: value}))}


def mismatches(kind: type[Section], where: str, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys of a dict that a section has no option for, and the values of a wrong type or out of range."""
    hints = _hints(kind)
    yield from (unknown(where, name, hints) for name in values if name not in hints)
    for name, value in values.items():
        if name in hints:
            yield from _wrong(kind, where, name, value)


def unknown(where: str, name: str, allowed: Mapping[str, Any] | list[str]) -> Problem:
    """Return the problem of a key that is not an option, with the option that was probably meant."""
    hint = did_you_mean(name, allowed, f"Allowed: {', '.join(sorted(allowed))}.")
    if kinds := [kind for kind in Section.__subclasses__() if "name" in vars(kind) and name in options(kind)]:
        hint = f"It is an option of {' and of '.join(map(_place, kinds))}."
    return Problem("E002", f"{where} has no option {name!r}.", hint)


def _place(kind: type[Section]) -> str:
    return f"REDIS_KIT['{kind.name}']" if kind.name else "REDIS_KIT"


def _hints(kind: type[Section]) -> dict[str, Any]:
    if kind not in _types:
        hints = get_type_hints(kind)
        _types[kind] = {name: hints[name] for name in options(kind)}
    return _types[kind]


def _wrong(kind: type[Section], where: str, name: str, value: Any) -> Iterator[Problem]:
    hint, least_most = _hints(kind)[name], kind.ranges.get(name)
    place, between = f"{where}['{name}']", " to ".join(map(number, least_most or ()))
    if not matches(value, hint):
        choices, at = _choices(hint), _wrong_item(value, hint)
        remedy = _remedy(kind, name, value)
        if choices:
            wrong = f"{place} is {value!r}; allowed: {', '.join(map(repr, choices))}."
            yield Problem("E011", wrong, remedy or did_you_mean(value, choices))
            return
        allowed = f"{describe(hint)} from {between}" if between else describe(hint)
        if at is not None:
            place, value, allowed = f"{place}[{at}]", value[at], describe(_item_type(value, hint))
        # A dict may hold passwords, and so may what was given in its place.
        shown = described_value(value) if "a dict" in allowed or name in kind.secrets else repr(value)
        yield Problem("E006", f"{place} is {shown}; it must be {allowed}.", remedy)
    elif least_most and value is not None and not least_most[0] <= value <= least_most[1]:
        yield Problem("E006", f"{place} is {value!r}; it must be {between}.")


def _remedy(kind: type[Section], name: str, value: Any) -> str:
    """Return what to write: an example of the section, or for None, and for text in place of a number or a list."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) and matches(int(value), _hints(kind)[name]):
        return f"Write {int(value)}."
    if isinstance(value, str) and _item_type([value], _hints(kind)[name]) is str:
        return f"Write {[part.strip() for part in value.split(',') if part.strip()]}."
    if name in kind.examples:
        return kind.examples[name]
    if value is not None:
        return ""
    default = next(field.default for field in fields(kind) if field.name == name)
    return "Leave it out for its default." if default is MISSING else f"Leave it out for its default, {default!r}."


def matches(value: Any, hint: Any) -> bool:
    """Tell whether a value is of the type that a field states. A bool, NaN and infinity are not numbers."""
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(matches(value, part) for part in get_args(hint))
    if origin in (list, tuple, set):
        return isinstance(value, origin) and all(matches(item, get_args(hint)[0]) for item in value)
    if hint is float or hint is int:
        number = isinstance(value, int if hint is int else (int, float)) and not isinstance(value, bool)
        return number and math.isfinite(value)
    if origin is Callable or hint is Callable:
        return callable(value)
    return isinstance(value, origin or hint)


def describe(hint: Any) -> str:
    """Return the words for a type in a message: "a number", "text", "a list"."""
    words = {float: "a number", int: "a whole number", str: "text", bool: "True or False", types.NoneType: "None"}
    words |= {bytes: "bytes", list: "a list", tuple: "a tuple", set: "a set"}
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(describe(part) for part in get_args(hint)))
    kind = get_origin(hint) or hint
    if kind is Callable:
        return "a function"
    return words.get(kind) or ("a dict" if issubclass(kind, Mapping) else f"a {kind.__name__}")


def described_value(value: Any) -> str:
    """Return the words for a value in a message that must not show it, as it may be or hold a password."""
    kind = type(value)
    if value is None or isinstance(value, bool):
        return repr(value)
    if kind in (str, int, float, bytes, dict, list, tuple, set):
        return describe(kind)
    return f"{'an' if kind.__name__[0] in 'aeiouAEIOU' else 'a'} {kind.__name__}"


def _item_type(value: Any, hint: Any) -> Any:
    """Return the type of the items if the value is a list or tuple, as the type of an option allows; else None."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    lists = [part for part in parts if get_origin(part) in (list, tuple) and isinstance(value, get_origin(part))]
    return get_args(lists[0])[0] if lists else None


def _wrong_item(value: Any, hint: Any) -> int | None:
    """Return the place of the first item of a wrong type in a list or tuple; None for any other value."""
    kind = _item_type(value, hint)
    return None if kind is None else next((at for at, item in enumerate(value) if not matches(item, kind)), None)


def _choices(hint: Any) -> list[str]:
    """Return the words that a type allows; none if it allows anything else too, other than None."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [part for part in get_args(hint) if part is not types.NoneType]
        return _choices(inner[0]) if len(inner) == 1 else []
    return [str(choice) for choice in get_args(hint)] if get_origin(hint) is Literal else []


on_change(warn_unless_installed.cache_clear, "INSTALLED_APPS")
on_change(_cache.clear, "REDIS_KIT", "CACHES", "SECRET_KEY")
