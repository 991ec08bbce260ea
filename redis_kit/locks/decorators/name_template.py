"""Names of locks with arguments of a call in them: ``report:{user_id}``."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import encode
from redis_kit.core.text import shortened


class NameTemplate:
    """Makes a name from the arguments of a call. Attributes, items and formats in braces are refused at creation."""

    def __init__(self, template: str, function: Callable[..., Any]) -> None:
        self.template, self.fields = template, _fields(template)
        if not self.fields:
            encode(template.format())
            return
        # Django's method_decorator passes a partial, whose __wrapped__ still has "self".
        partial = isinstance(function, functools.partial)
        self._signature = inspect.signature(function, follow_wrapped=not partial)
        kinds = {parameter.kind: parameter.name for parameter in self._signature.parameters.values()}
        self._others = kinds.get(inspect.Parameter.VAR_KEYWORD, "")
        missing = self.fields - set(self._signature.parameters)
        if missing and not self._others:
            raise _wrong(template, f"the function has no argument {', '.join(sorted(missing))}")

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the name for a call. Raises TypeError for arguments that don't fit the function."""
        if not self.fields:
            return self.template.format()
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = {**bound.arguments.get(self._others, {}), **bound.arguments}
        return self.template.format(**{field: self._text(field, values) for field in self.fields})

    def _text(self, field: str, values: Mapping[str, Any]) -> str:
        if field not in values:
            raise _wrong(self.template, f"the call has no argument {field}")
        value = values[field]
        kind: Any = type(value)
        if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
            raise _wrong(self.template, f"the argument {field} has no text, only an address in memory")
        return str(value)


def _fields(template: Any) -> set[str]:
    if not isinstance(template, str):
        raise _wrong(template, "it is not text")
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise _wrong(template, str(error)) from None
    for _, field, spec, conversion in parts:
        if field is not None and (not field.isidentifier() or spec or conversion):
            whole = f"{field}{'!' if conversion else ''}{conversion or ''}{':' if spec else ''}{spec}"
            raise _wrong(template, f"{{{whole[:40]}}} is not the plain name of an argument")
    return {field for _, field, _, _ in parts if field is not None}


def _wrong(template: Any, reason: str) -> InvalidName:
    return InvalidName(
        f"{shortened(template)} can't be the name of a lock here: {reason}. Only plain {{argument}} is allowed."
    )
