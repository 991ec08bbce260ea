"""The public names of a module as a Markdown list: signature and first sentence of the docstring.

A code host shows this list. The built documentation has the whole docstrings in its place, by autodoc.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar, Unpack, get_args, get_origin, get_type_hints

# What components and redis-py call, and projects do not.
INNER_BASES = {"Primitive", "BaseThrottle"}
INNER = {
    *("abandon", "acquire_or_raise", "aacquire_or_raise", "annotate", "decide", "identity", "keys"),
    *("lease_or_raise", "local_key", "over", "own_lease", "read", "refusal_error", "sources"),
    *(
        "register_scripts",
        "tag",
        "wait_seconds",
        "wake_up_list",
        "when_unavailable",
    ),
}
INNER_ENDS = ("_flow", "_step")
SENTENCE = re.compile(r".*?[.:](?=\s|$)", re.DOTALL)


def api_list(module_name: str) -> str:
    """Return the list of a module's public names, with the public members of classes."""
    module = import_module(module_name)
    return "\n".join(_lines(dict(_public(module)), "", owner=None))


def is_inner(name: str) -> bool:
    """Return whether a method is called by the package alone, also under a public name."""
    return name.startswith(("_", "do_")) or name.endswith(INNER_ENDS) or name in INNER


def _public(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield what autodoc documents: ``__all__``, or what is defined in the module."""
    names = getattr(module, "__all__", None)
    for name in sorted(names or vars(module), key=lambda name: (not name[0].isupper(), name)):
        value = getattr(module, name)
        own = not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        if (names or own) and not isinstance(value, TypeVar):
            yield name, value


def _lines(members: dict[str, Any], indent: str, owner: type | None) -> Iterator[str]:
    for name, value in members.items():
        if name[:1] == "a" and name[1:] in members and (inspect.getdoc(_plain(value)) or "").startswith("See "):
            continue  # stands beside its twin
        twin = f", `a{name}()`" if f"a{name}" in members else ""
        sentence = _sentence(value) if owner or inspect.isclass(value) or inspect.isroutine(value) else ""
        yield f"{indent}- `{name}{_signature(value, owner)}`{twin}{f': {sentence}' if sentence else ''}"
        if inspect.isclass(value):
            listed = {base for base in value.__mro__[1:] if members.get(base.__name__) is base}
            yield from _lines(_members(value, listed), indent + "  ", owner=value)


def _members(kind: type, listed: set[type]) -> dict[str, Any]:
    """Return the public methods and properties of a class and of its bases in the package, except the listed bases."""
    members: dict[str, Any] = {}
    for base in kind.__mro__:
        if _is_ours(base) and base.__name__ not in INNER_BASES:
            for name, value in vars(base).items():
                if not is_inner(name) and (isinstance(value, property) or inspect.isroutine(_plain(value))):
                    members.setdefault(name, value)
    return {
        name: members[name]
        for name in sorted(members)
        if inspect.getdoc(_plain(members[name])) and members[name] is not _inherited(name, listed)
    }


def _inherited(name: str, bases: set[type]) -> Any:
    return next((vars(base)[name] for owner in bases for base in owner.__mro__ if name in vars(base)), None)


def _plain(value: Any) -> Any:
    return getattr(value, "__func__", value)


def _sentence(value: Any) -> str:
    paragraph = (inspect.getdoc(_plain(value)) or "").split("\n\n")[0]
    text = " ".join(paragraph.replace("``", "`").split())
    match = SENTENCE.match(text)
    return re.sub(r":$", ".", match[0] if match else text)


def _signature(value: Any, owner: type | None) -> str:
    """Return the parameters without types, and the type of the result; for a record its fields with their types."""
    if isinstance(value, property) or not callable(_plain(value)):
        return ""
    is_class = inspect.isclass(value)
    record = is_class and (is_dataclass(value) or hasattr(value, "_fields"))
    if is_class and not record and not _has_own_init(value):
        return ""
    try:
        signature = inspect.signature(_plain(value))
    except (TypeError, ValueError):
        return ""
    bases = value.__mro__ if record else ()  # fields of a foreign base differ between its versions
    fields = {name for base in bases if _is_ours(base) for name in vars(base).get("__annotations__", ())}
    parameters = [
        parameter.replace(
            annotation=_Raw(_type(parameter.annotation)) if record else parameter.empty,
            default=parameter.empty if parameter.default is parameter.empty else _Raw(_default(parameter.default)),
        )
        for given in signature.parameters.values()
        for parameter in _unpacked(given)
        if parameter.name in fields or (not record and parameter.name != "unknown")  # that only catches mistakes
    ]
    if inspect.ismethod(value) or (
        owner and not isinstance(inspect.getattr_static(owner, value.__name__, None), staticmethod)
    ):
        parameters = parameters[1:]
    result = (
        "None" if is_class or signature.return_annotation is signature.empty else _type(signature.return_annotation)
    )
    for variable, kind in _type_arguments(owner):
        result = re.sub(rf"Optional\[{variable}\]", f"{kind} | None", result)
    shown = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return shown if result == "None" else f"{shown} -> {result}"


def _type_arguments(owner: type | None) -> Iterator[tuple[str, str]]:
    """Yield the type variables of the bases of a class, each with what it stands for."""
    for base in owner.__mro__ if owner else ():
        for written in vars(base).get("__orig_bases__", ()):
            variables = getattr(get_origin(written), "__parameters__", ())
            yield from ((each.__name__, _type(kind)) for each, kind in zip(variables, get_args(written), strict=False))


def _unpacked(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the parameters that one of the kind ``**options`` stands for, if its type says so; else itself."""
    if get_origin(parameter.annotation) is not Unpack:
        return [parameter]
    (options,) = get_args(parameter.annotation)
    return [inspect.Parameter(name, parameter.KEYWORD_ONLY, default=...) for name in get_type_hints(options)]


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"'([A-Z]\w*)'", r"\1", text)  # a name that is defined later
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z])", "", text).replace("NoneType", "None").replace("~", "")


def _default(value: Any) -> str:
    text = value.__name__ if inspect.isclass(value) else repr(value)
    return "..." if text.startswith("<") or value is ... else text


def _has_own_init(kind: type) -> bool:
    return any("__init__" in vars(base) for base in kind.__mro__ if _is_ours(base))


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("redis_kit.")


class _Raw:
    """A text that a signature prints as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
