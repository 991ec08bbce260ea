"""The scripts of workflows, each an atomic step on the server's clock, and their nodes as they are stored."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.features.workflows.keys import WorkflowKeys, WorkflowLists
from redis_kit.queues.settings import QueueSettings

NONE = "-"
ERROR = 1000  # characters
MOST_RESULTS = 16 * 1024 * 1024  # bytes of results that one step is called with
NEVER_STARTED = 3_600_000  # ms until nodes of a workflow that never started expire
GRACE = 10_000  # ms for which a step is left alone before its job is looked for
CHECKED_STEPS, CHECKED_WORKFLOWS = 100, 20  # in one look
FIRST_CHECK, NEXT_CHECK = 15_000, 30_000  # ms
MOST_LISTED = 10_000  # workflows
CANCELLED_STEPS = 100  # in one call
_KEY = re.compile(r"^-- KEYS\[\d+\]\s+(\w+)", re.MULTILINE)


class WorkflowScript:
    """A script over the keys of one workflow, or over the lists of all. Its header names them, in their order."""

    def __init__(self, name: str) -> None:
        self._script = scripts.load(__package__, name)
        self._parts = _KEY.findall(self._script.source)

    def __call__(self, id: str | None, *args: Any) -> ScriptCall:
        """Return the step for a workflow; for the lists if ``id`` is None."""
        keys = WorkflowLists.of() if id is None else WorkflowKeys.of(id)
        return self._script([getattr(keys, part) for part in self._parts], args)


CREATE, BEGIN, FINISH, FAIL, CONFIRM = map(WorkflowScript, ("create", "begin", "finish", "fail", "confirm"))
CANCEL, RETRY, RESERVE, CHECK = map(WorkflowScript, ("cancel", "retry", "reserve", "check"))
READ_STATUS, LIST_NODES = map(WorkflowScript, ("read_status", "list_nodes"))
REGISTER, TAKE_CHECKS, FORGET = map(WorkflowScript, ("register_workflow", "take_checks", "forget_workflow"))


class StepJob(NamedTuple):
    """The job of a step: when it is due, as the script put expects it, and what is stored about its call.

    ``backend`` is the alias of the backend that stores its result, None if no result is stored; ``lane`` the text of
    its lane, "" without one.
    """

    id: str
    queue: str
    priority: int
    due: str
    backend: str | None
    lane: str
    body: bytes


class Node(NamedTuple):
    """A step or a group of a workflow. It waits for ``waits`` others; ``dependents`` wait for its end.

    A new member is named by its number, with a "g" before that of a group. What was read has numbers, and no ``waits``.
    """

    number: int
    group: int
    waits: int
    dependents: Sequence[int]
    job: StepJob | None = None
    members: Sequence[Any] = ()
    callback: int | None = None

    def text(self) -> bytes:
        """Return it as it is stored."""
        if self.job is None:
            callback = NONE if self.callback is None else self.callback
            return f"g {self.group} {joined(self.dependents)} {callback}\n{joined(self.members)}".encode()
        id, queue, priority, due, backend, lane, body = self.job
        alias = NONE if backend is None else quote(backend, safe="")
        place = f"{id} {quote(queue, safe='')} {priority} {due} {alias} {quote(lane, safe='') or NONE}"
        head = f"s {self.group} {joined(self.dependents)} {place}\n"
        return head.encode() + body


def joined(numbers: Sequence[int | str]) -> str:
    """Return numbers as the scripts read them."""
    return ",".join(map(str, numbers)) or NONE


def read_node(number: bytes, text: bytes) -> Node:
    """Return a node, or as much as the beginning of its text tells. Raises ValueError if it is damaged."""
    head, _, body = text.partition(b"\n")
    match head.decode("utf-8", "replace").split(" "):
        case ["g", group, dependents, callback]:
            then = None if callback == NONE else int(callback)
            return Node(int(number), int(group), 0, _numbers(dependents), None, _numbers(body.decode()), then)
        case ["s", group, dependents, id, queue, priority, due, backend, lane]:
            alias, line = None if backend == NONE else unquote(backend), "" if lane == NONE else unquote(lane)
            job = StepJob(id, unquote(queue), int(priority), due, alias, line, body)
            return Node(int(number), int(group), 0, _numbers(dependents), job)
    raise ValueError(f"node {number!a} of a workflow is damaged: {head[:100]!a}")


def cancel(id: str, *, begins: bool) -> ScriptCall:
    """Return the step that cancels a workflow, or goes on with that, and some of its steps."""
    return CANCEL(id, result_ttl_ms(failed=True), "cancelled with its workflow", CANCELLED_STEPS, int(begins))


def result_ttl_ms(*, failed: bool) -> int:
    """Return for how many ms a workflow is stored after its end."""
    options = conf.section(QueueSettings)
    return int((options.FAILED_RESULT_TTL if failed else options.RESULT_TTL) * 1000)


def _numbers(text: str) -> list[int]:
    return [] if text in ("", NONE) else [int(number.removeprefix("g")) for number in text.split(",")]
