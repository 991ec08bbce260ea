"""The part of a message that says which step of a workflow its job is, and which results it is called with."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis_kit.queues.engine.message import Extra, Message
from redis_kit.queues.errors import CorruptMessage

OF_STEP, FIELD = 2, "workflow"  # the version of messages of steps, and their field
FAILURES = "failures"
MOST_STEPS = 10_000  # of one workflow, with its groups
_WORKFLOW = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEAD = re.compile(rb'\{"task":"(?:[^"\\]|\\.)*","v":2,"workflow":\["([A-Za-z0-9_-]{1,64})",(\d{1,9}),')

# The number of a step, a list of these, or {"failures": the number of a group}.
Source = Any


class StepCall(NamedTuple):
    """A step of a workflow, by its number; ``keeps`` says whether others get its result.

    ``sources`` has for each argument that is a result its position or name, and where the result comes from.
    """

    workflow: str
    number: int
    keeps: bool = False
    sources: tuple[tuple[int | str, Source], ...] = ()

    def extra(self) -> Extra:
        """Return it as a message holds it, in JSON's types."""
        content = [self.workflow, self.number, int(self.keeps), [list(pair) for pair in self.sources]]
        return Extra(OF_STEP, FIELD, content)

    def numbers(self) -> list[int]:
        """Return the steps whose results are arguments, each once."""
        return list(dict.fromkeys(number for _, source in self.sources for number in _numbers(source)))

    def group(self) -> int | None:
        """Return the group whose failures are an argument, if there is one."""
        return next((source[FAILURES] for _, source in self.sources if isinstance(source, dict)), None)


def of_call(call: Message) -> StepCall:
    """Return the step that a message of a step has. Raises CorruptMessage."""
    match call.extra:
        case [str(workflow), int(number), int(keeps), list(pairs)] if _WORKFLOW.fullmatch(workflow):
            if all(map(_is_pair, pairs)):
                return StepCall(workflow, number, bool(keeps), tuple(map(tuple, pairs)))
    raise CorruptMessage("not a message of a workflow: not a step of a workflow")


def step_of(body: bytes) -> StepCall | None:
    """Return the step that a body, or its beginning, names; None for a job of no workflow."""
    head = _HEAD.match(body)
    return StepCall(head[1].decode(), int(head[2])) if head else None


def filled(source: Source, values: Mapping[int, Any], failures: Sequence[Any]) -> Any:
    """Return an argument, given the results by step."""
    if isinstance(source, dict):
        return failures
    if isinstance(source, list):
        return [filled(part, values, failures) for part in source]
    return values.get(source)


def _numbers(source: Source) -> list[int]:
    if isinstance(source, list):
        return [number for part in source for number in _numbers(part)]
    return [] if isinstance(source, dict) else [source]


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (int, str)) and _is_source(pair[1])


def _is_source(source: Any) -> bool:
    if isinstance(source, list):
        return all(map(_is_source, source))
    if isinstance(source, dict):
        return source.keys() == {FAILURES} and isinstance(source[FAILURES], int)
    return isinstance(source, int)
