"""Errors whose own code fails, and a task that raises them: each class is a way in which a text can't be had."""

from typing import Any

from redis_kit.queues import task


class _Metaclass(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__qualname__", "__name__", "__module__"):
            raise ValueError("no name")
        return super().__getattribute__(name)


class StrRaises(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class StrExits(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


class StrRecurses(Exception):
    def __str__(self) -> str:
        return str(self)


class StrIsNoText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class _Text(str):
    __slots__ = ()

    def __getitem__(self, key: Any) -> str:
        raise ValueError("no part")

    def __str__(self) -> str:
        raise ValueError("no copy")

    def __format__(self, spec: str) -> str:
        raise ValueError("no form")

    def encode(self, *_: Any) -> bytes:
        raise SystemExit(9)


class StrIsASubclass(Exception):
    def __str__(self) -> str:
        return _Text("a text")


class StrIsHuge(Exception):
    def __str__(self) -> str:
        return "x" * 20_000_000


class StrControls(Exception):
    def __str__(self) -> str:
        return "a\0\x1b[31m\nb"


class ReprRaises(Exception):
    def __repr__(self) -> str:
        raise SystemExit(9)


class ReduceRaises(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit(9)


class ClassRaises(Exception):
    @property
    def __class__(self) -> Any:
        raise SystemExit(9)


class ClassLies(Exception):
    __class__ = SystemExit  # type: ignore[assignment]


class TracebackRaises(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit(9)


class NotesRaise(Exception):
    @property
    def __notes__(self) -> Any:  # type: ignore[override]
        raise SystemExit(9)


class IsNotTrue(Exception):
    def __bool__(self) -> bool:
        raise SystemExit(9)

    def __len__(self) -> int:
        raise SystemExit(9)

    def __eq__(self, other: object) -> bool:
        raise SystemExit(9)

    __hash__ = None  # type: ignore[assignment]


class NameRaises(Exception, metaclass=_Metaclass):
    pass


class ModuleIsNoText(Exception):
    __module__ = None  # type: ignore[assignment]


class Empty(Exception):
    pass


class Exits(BaseException):
    pass


def _own_cause() -> BaseException:
    error = Empty("circle")
    error.__cause__ = error
    error.__context__ = error
    return error


def _group() -> BaseException:
    more = ExceptionGroup("more", [StrIsNoText(), ValueError("one")])
    return BaseExceptionGroup("many", [StrExits(), SystemExit(3), more])


HOSTILE = [
    *(StrRaises, StrExits, StrRecurses, StrIsNoText, StrIsASubclass, StrIsHuge, StrControls, ReprRaises, ReduceRaises),
    *(ClassRaises, ClassLies, TracebackRaises, NotesRaise, IsNotTrue, NameRaises, ModuleIsNoText, Empty, Exits),
    *(SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, StopAsyncIteration, MemoryError, RecursionError),
]
ERRORS: dict[str, Any] = {type.__dict__["__qualname__"].__get__(kind): kind for kind in HOSTILE}
ERRORS |= {"its own cause": _own_cause, "a group": _group}


@task(max_attempts=2, backoff=0)
def fail_as(name: str) -> None:
    raise ERRORS[name]()


@task(max_attempts=2, backoff=0)
async def fail_as_async(name: str) -> None:
    raise ERRORS[name]()
