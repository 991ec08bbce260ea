"""The scripts of workflows, each an atomic step on the server's clock, and their nodes as they are stored."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.errors import UnknownWorkflow
from redis_kit.queues.features.workflows.keys import workflow_key
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
CREATE, BEGIN, END, CONFIRM, CANCEL, RETRY, RESERVE, CHECK, READ_STATUS, LIST_NODES = (
    QueueScript(name, __package__)
    for name in (
        *("create", "begin", "end", "confirm", "cancel", "retry", "reserve", "check"),
        *("read_status", "list_nodes"),
    )
)
# Over the lists of all workflows.
REGISTER, TAKE_CHECKS, FORGET = (
    QueueScript(name, __package__) for name in ("register_workflow", "take_checks", "forget_workflow")
)


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
        place = f"{self.group} {joined(self.dependents)}"
        if self.job is None:
            callback = NONE if self.callback is None else self.callback
            return f"g {place} {callback}\n{joined(self.members)}".encode()
        *job, body = self.job
        return f"s {place} {json.dumps(job)}\n".encode() + body


def joined(numbers: Sequence[int | str]) -> str:
    """Return numbers as the scripts read them."""
    return ",".join(map(str, numbers)) or NONE


def read_node(number: bytes, text: bytes) -> Node:
    """Return a node, or as much as the beginning of its text tells. Raises ValueError if it is damaged."""
    head, _, body = text.partition(b"\n")
    try:
        kind, group, dependents, rest = head.decode().split(" ", 3)
        place = int(number), int(group), 0, _numbers(dependents)
        if kind == "s":
            job = [*json.loads(rest), body]
            return Node(*place, StepJob(*job))
        return Node(*place, None, _numbers(body.decode()), None if rest == NONE else int(rest))
    except (ValueError, TypeError) as error:
        raise ValueError(f"node {number!a} of a workflow is damaged: {head[:100]!a}") from error


def cancel(id: str, *, begins: bool) -> ScriptCall:
    """Return the step that cancels a workflow, or goes on with that, and some of its steps."""
    ttl_ms = result_ttl_ms(failed=True)
    return CANCEL(workflow_key(id), ttl_ms, "cancelled with its workflow", CANCELLED_STEPS, int(begins))


def unknown(id: str) -> UnknownWorkflow:
    """Return the error for a workflow that does not exist."""
    return UnknownWorkflow(f"There is no workflow {id}: its transaction is not committed yet, or it has expired.")


def result_ttl_ms(*, failed: bool) -> int:
    """Return for how many ms a workflow is stored after its end."""
    options = conf.section(QueueSettings)
    return int((options.FAILED_RESULT_TTL if failed else options.RESULT_TTL) * 1000)


def _numbers(text: str) -> list[int]:
    return [] if text in ("", NONE) else [int(number.removeprefix("g")) for number in text.split(",")]
