"""``@locked``: a function that runs at most once at a time, in every process; and names with arguments in them."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from string import Formatter
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from django.http import HttpRequest

from redis_kit.core.awaitables import is_async, maybe_await, not_awaitable
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.keys import encode
from redis_kit.core.text import did_you_mean, shortened, unexpected
from redis_kit.locks.arguments import HINTS, LockOptions, Seconds
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.kinds.lock import Lock

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
OnBusyAnswer = Literal["raise", "wait"] | Callable[..., Any]
OnBusy = OnBusyAnswer | Literal["skip"]
ANSWERS = ("raise", "skip", "wait")
IN_VIEWS = (
    "A view must answer, so give it a function that returns a response: "
    "on_busy=lambda request, *args, **kwargs: HttpResponse(status=409)."
)
NOT_HELD = "@locked would not hold the lock while the result of {!r} is awaited: decorate a coroutine function."


class SkipDecorator(Protocol):
    """Decorates a function whose calls return None if they are skipped."""

    @overload
    def __call__(
        self, function: Callable[Arguments, Coroutine[Any, Any, Result]], /
    ) -> Callable[Arguments, Coroutine[Any, Any, Result | None]]: ...
    @overload
    def __call__(self, function: Callable[Arguments, Result], /) -> Callable[Arguments, Result | None]: ...


@overload
def locked(
    name: str,
    *,
    on_busy: Literal["skip"],
    blocking_timeout: Seconds | None = None,
    **options: Unpack[LockOptions],
) -> SkipDecorator: ...
@overload
def locked(
    name: str,
    *,
    on_busy: OnBusyAnswer = "raise",
    blocking_timeout: Seconds | None = None,
    **options: Unpack[LockOptions],
) -> Callable[[AnyFunction], AnyFunction]: ...
def locked(
    name: str,
    *,
    on_busy: OnBusy = "raise",
    blocking_timeout: Seconds | None = None,
    **options: Unpack[LockOptions],
) -> Callable[[Any], Any]:
    """Run a function, coroutine function, view or method only while holding the lock ``name``.

    ``{user_id}`` in the name stands for that argument of the call; nothing but plain names is allowed in braces.
    While the lock is held by another caller, ``on_busy`` decides: "raise" LockNotAcquired, "skip" the call and return
    None, "wait" for the lock, or, if it is a callable, call it with the same arguments and return its answer. A view
    needs a callable that returns a response: "skip" raises InvalidValue if an argument is an HttpRequest.
    ``blocking_timeout`` is how long to wait before that; "wait" without it waits for ever. The other arguments are
    those of Lock. Raises InvalidName for a wrong name and TypeError for a generator function or a task, at decoration,
    and TypeError for a sync function that returns an awaitable. Two round trips per call.
    """
    if unknown := [option for option in options if option not in LockOptions.__annotations__]:
        raise unexpected("locked", locked, unknown, HINTS)
    if callable(name):
        raise TypeError('@locked needs the name of a lock: @locked("report:{user_id}").')
    if on_busy not in ANSWERS and not callable(on_busy):
        wrong = f"on_busy must be 'raise', 'skip', 'wait' or a callable, not {shortened(on_busy)}."
        raise InvalidValue(f"{wrong} {did_you_mean(on_busy, ANSWERS)}".rstrip())
    waits = on_busy == "wait" or blocking_timeout is not None
    create = functools.partial(Lock, blocking=waits, blocking_timeout=blocking_timeout, **options)
    create("checks the arguments")

    def decorate(function: Any) -> Any:
        _check(function)
        template = NameTemplate(name, function)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                lease = create(template(args, kwargs)).acquire_or_raise()
            except LockNotAcquired as error:
                return _answer(on_busy, error, args, kwargs)
            with lease:
                return not_awaitable(function(*args, **kwargs), NOT_HELD, function)

        @functools.wraps(function)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            try:
                lease = await create(template(args, kwargs)).aacquire_or_raise()
            except LockNotAcquired as error:
                return await maybe_await(_answer(on_busy, error, args, kwargs))
            async with lease:
                return await function(*args, **kwargs)

        return arun if is_async(function) else run

    return decorate


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


def _answer(on_busy: OnBusy, error: LockNotAcquired, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the answer of a busy call, or raise the error."""
    if callable(on_busy):
        return on_busy(*args, **kwargs)
    is_view = any(isinstance(value, HttpRequest) for value in args[:2])  # the second one follows self
    if on_busy != "skip":
        if is_view:
            error.add_note(IN_VIEWS)
        raise error
    if is_view:
        raise InvalidValue(f"on_busy='skip' returns None, which is not a response. {IN_VIEWS}") from error
    return None


def _check(function: Any) -> None:
    if hasattr(type(function), "enqueue"):
        raise TypeError("@locked takes a function, not a task; put @locked below @task.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"@locked can't hold a lock while a generator is paused; use Lock inside {function!r}.")
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(f"@locked takes a function, not {function!r}; put it below @staticmethod and @classmethod.")
