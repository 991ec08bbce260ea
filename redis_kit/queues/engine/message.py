"""The message of a task's job: the name of the task and its arguments."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from redis_kit.queues.engine import payload
from redis_kit.queues.engine.feature import message_fields
from redis_kit.queues.errors import CorruptMessage, NewerMessage


class Extra(NamedTuple):
    """What a feature stores with a call: JSON under a field, in messages of a version that is the feature's own."""

    version: int
    field: str
    content: Any


class Message(NamedTuple):
    """One call of a task. After ``expires`` ms beyond its time it need not begin; 0 is for ever.

    ``sink`` is the system to which it is handed over, whatever the options of its queue; ``options`` are for that one.
    ``extra`` is what a feature stored with the call, in its own form; ``trace`` the context of its span, see
    core.tracing; ``headers`` what middleware of the project added.
    """

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    expires: int = 0
    sink: str = ""
    options: Mapping[str, Any] = {}
    extra: Any = None
    trace: Mapping[str, Any] = {}
    headers: Mapping[str, Any] = {}


PLAIN = 1  # the version of a message without an extra: workers that do not know the feature leave others alone
_KINDS = {"task": str, "args": list, "kwargs": dict, "expires": int, "sink": str, "options": dict}
_TASK = re.compile(rb'\{"task":("(?:[^"\\]|\\.)*")')


def dumps(
    task: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    expires: int = 0,
    sink: str = "",
    options: Mapping[str, Any] | None = None,
    extra: Extra | None = None,
    trace: Mapping[str, str] | None = None,
    tags: Sequence[str] = (),
    headers: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a call as JSON. Raises NotSerializable naming the place, such as ``args[1]['x']``, and PayloadTooLarge."""
    call: dict[str, Any] = {"task": task}
    if extra:
        call |= {"v": extra.version, extra.field: extra.content}  # first: features read the beginning of a body
    if tags:
        call["tags"] = list(tags)  # also in the beginning; see tags_of()
    if args:
        call["args"] = payload.plain(list(args), "args")
    if kwargs:
        call["kwargs"] = payload.plain(kwargs, "kwargs")
    if expires:
        call["expires"] = expires
    if sink:
        call["sink"] = sink
    if options:
        call["options"] = {name: payload.plain(value, name) for name, value in options.items()}
    if trace:
        call["trace"] = trace
    if headers:
        call["headers"] = payload.plain(headers, "headers")
    return payload.encoded(call, "The call")


@lru_cache(maxsize=1024)
def dumper(task: str, *, expires: int = 0, tags: tuple[str, ...] = ()) -> Callable[[Any, dict[str, Any]], bytes]:
    """Return a function that does what dumps() does, for many calls of one task."""
    head = dumps(task, (), {}, expires=expires, tags=tags)[:-1].decode()

    def dump(args: Any, kwargs: dict[str, Any]) -> bytes:
        text = head
        if args:
            text += f',"args":{payload.text(args, "args")}'
        if kwargs:
            text += f',"kwargs":{payload.text(kwargs, "kwargs")}'
        return payload.checked(f"{text}}}".encode(), "The call")

    return dump


def loads(body: bytes) -> Message:
    """Return the call that a job holds; fields that it does not know are ignored.

    Raises CorruptMessage, or NewerMessage.
    """
    content = payload.loads(body)
    if not isinstance(content, dict):
        raise CorruptMessage(f"not a task's message: {type(content).__name__} in place of an object")
    version: Any = content.get("v", PLAIN)
    extra = None if version == PLAIN else _extra(content, version)
    task: Any = content.get("task")
    sink, options = content.get("sink", ""), content.get("options", {})
    call = Message(task, content.get("args", []), content.get("kwargs", {}), content.get("expires", 0), sink, options)
    if not all(map(isinstance, call, _KINDS.values())):
        raise _damaged(call)
    if trace := content.get("trace"):
        call = call._replace(trace=trace if isinstance(trace, dict) else {})
    if headers := content.get("headers"):
        call = call._replace(headers=headers if isinstance(headers, dict) else {})
    return call if extra is None else call._replace(extra=extra)


def _damaged(call: Message) -> CorruptMessage:
    """Return the error for a call of which a part is of a wrong type."""
    values = zip(_KINDS.items(), call, strict=False)
    name, kind, value = next((name, kind, value) for (name, kind), value in values if not isinstance(value, kind))
    return CorruptMessage(f"not a task's message: {name!r} is {type(value).__name__}, not {kind.__name__}")


def reads(version: object) -> bool:
    """Return whether this process reads messages of a version."""
    return isinstance(version, int) and (version == PLAIN or version in message_fields())


def _extra(content: dict[str, Any], version: object) -> Any:
    if not isinstance(version, int) or not PLAIN < version < 2**31:
        raise CorruptMessage(f"a message of version {version!a}, which does not exist")
    if not reads(version):
        raise NewerMessage(version)
    field = message_fields()[version]
    if content.get(field) is None:
        raise CorruptMessage(f"a message of version {version} without {field!r}")
    return content[field]


def task_of(body: bytes) -> str:
    """Return the name of the task that a body, or its beginning, names first; "" if it names none."""
    try:
        return str(json.loads(begun[1])) if (begun := _TASK.match(body)) else ""
    except ValueError:
        return ""


def tags_of(body: bytes) -> tuple[str, ...]:
    """Return the tags that a body, or its beginning, names; () if it names none."""
    if not (begun := _TASK.match(body)):
        return ()
    text, at = body[begun.end() :].decode("utf-8", "replace"), 0
    with suppress(ValueError, RecursionError):  # the body ends in the midst of a value
        while text.startswith(',"', at):
            name, colon = _decode(text, at + 1)
            value, at = _decode(text, colon + 1)
            if name == "tags" and isinstance(value, list):
                return tuple(tag for tag in value if isinstance(tag, str))
            if name != "v" and name not in message_fields().values():
                break
    return ()


_decode = json.JSONDecoder().raw_decode
