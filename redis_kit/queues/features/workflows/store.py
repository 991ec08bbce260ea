"""Workflows in Redis, as flows: one starts, its steps begin and end, it is cancelled or retried.

The workflow is changed first, in one script; then the steps that became due are put into their queues, and that is
noted. A process may die in between: the job of the step that ended is delivered again, and sends them; and workers
look after workflows from time to time.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from django.utils import timezone

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues import signals
from redis_kit.queues.engine import calls, enqueue, history, message, payload
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.errors import UnknownWorkflow
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings, whole
from redis_kit.queues.worker.shared import failpoints

NONE = "-"
LONGEST_ERROR = 1000  # characters
MOST_RESULTS = 16 * 1024 * 1024  # bytes of results that one step is called with
NEVER_STARTED = 3_600_000  # ms until nodes of a workflow that never started expire
GRACE = 10_000  # ms for which a step is left alone before its job is looked for
CHECKED_STEPS, CHECKED_WORKFLOWS = 100, 20  # in one look
FIRST_CHECK, NEXT_CHECK = 15_000, 30_000  # ms
MOST_LISTED = 10_000  # workflows
CANCELLED_STEPS = 100  # in one call
CREATE, BEGIN, END, CONFIRM, CANCEL, RETRY, RESERVE, CHECK, READ_STATUS, LIST_NODES, REGISTER, TAKE_CHECKS, FORGET = (
    QueueScript(name, __package__)
    for name in (
        *("create", "begin_step", "end_step", "confirm", "cancel", "retry", "reserve", "check", "read_status"),
        *("list_nodes", "register_workflow", "take_checks", "forget_workflow"),
    )
)
PUT = 100  # jobs in one round trip
RETRIED = 200  # steps in one call
CALLER = 0  # made due by no step
GONE, BEGUN, BEGUN_AGAIN, ENDED, CANCELLED, NOT_DUE, TOO_LARGE = range(7)
RECORDED, IGNORED = 1, 2


def workflow_key(id: str, part: str = "") -> str:
    """Return a key of a workflow. No queue has it: the name of a queue never holds a colon in a key."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues:workflow:{id}}}:{part}"


def list_key(part: str = "") -> str:
    """Return the key of a list of all workflows, in the slot of the names of queues."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues}}:workflows:{part}"


class StepJob(NamedTuple):
    """The job of a step: its delay in ms or when it is due, 0 for neither, and what is stored about its call.

    ``backend`` is the alias of the backend that stores its result, None if no result is stored; ``lane`` the text of
    its lane, "" without one.
    """

    id: str
    queue: str
    priority: int
    delay: int
    due: int
    backend: str | None
    lane: str
    body: bytes


@dataclass
class Node:
    """A step or a group of a workflow. It waits for ``waits`` others; ``dependents`` wait for its end.

    ``members`` are numbers, with a "g" before that of a group. What is not stored is known of new nodes only: the part
    of the workflow, whether another step ``keeps`` a step's result, and the sources of its arguments.
    """

    number: int
    group: int
    waits: int = 0
    dependents: list[int] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    callback: int | None = None
    job: StepJob | None = None
    part: Any = None
    keeps: bool = False
    sources: list[tuple[int | str, Any]] = field(default_factory=list)

    def text(self) -> bytes:
        """Return it as it is stored."""
        place = f"{self.group} {','.join(map(str, self.dependents)) or NONE}"
        if self.job is None:
            callback = NONE if self.callback is None else self.callback
            return f"g {place} {callback}\n{','.join(self.members)}".encode()
        *job, body = self.job
        return f"s {place} {json.dumps(job)}\n".encode() + body

    @property
    def member_numbers(self) -> list[int]:
        """Return the numbers of its members."""
        return [int(member.removeprefix("g")) for member in self.members]

    @property
    def followers(self) -> list[int]:
        """Return what follows its end: its dependents, and the callback of a group."""
        return [*self.dependents, *([] if self.callback is None else [self.callback])]


def read_node(number: bytes, text: bytes) -> Node:
    """Return a node, or as much as the beginning of its text tells. Raises ValueError if it is damaged."""
    head, _, body = text.partition(b"\n")
    try:
        kind, group, dependents, rest = head.decode().split(" ", 3)
        node = Node(int(number), int(group))
        node.dependents = [] if dependents == NONE else list(map(int, dependents.split(",")))
        if kind == "s":
            node.job = StepJob(*[*json.loads(rest), body])
        else:
            node.members = re.findall(r"g?\d+", body.decode())
            node.callback = None if rest == NONE else int(rest)
    except (ValueError, TypeError) as error:
        raise ValueError(f"node {number!a} of a workflow is damaged: {head[:100]!a}") from error
    return node


class Begun(NamedTuple):
    """The answer to begin(): how, the results by step, and the failed steps as tasks get them.

    Of a step that has ended before, its result.
    """

    how: int
    values: Mapping[int, Any] = MappingProxyType({})
    failures: Sequence[Mapping[str, str]] = ()
    value: bytes = b""


def create(id: str, name: str, nodes: Sequence[Node]) -> Flow[None]:
    """Store a workflow, start it, and add the jobs of its first steps. A repeat is safe.

    The number of steps goes with the last nodes.
    """
    yield REGISTER(list_key(), id, MOST_LISTED, FIRST_CHECK)
    steps, page = sum(node.job is not None for node in nodes), []
    for chunk in enqueue.chunks(nodes, lambda node: len(node.job.body) if node.job else 0):
        count = steps if chunk[-1] is nodes[-1] else 0
        page = yield CREATE(workflow_key(id), name, count, NEVER_STARTED, *_flat(chunk))
    yield from send(id, CALLER, page)


def begin(step: StepCall) -> Flow[Begun]:
    """Begin a step. If it has ended before, add the jobs again that became due with its end."""
    group, numbers = step.group(), step.numbers()
    results = (MOST_RESULTS, "" if group is None else group, *numbers)
    how, *rest = yield BEGIN(workflow_key(step.workflow), step.number, *results)
    if how == ENDED:
        yield from send(step.workflow, step.number, rest[1:])
        return Begun(how, value=rest[0])
    if how == BEGUN_AGAIN:
        yield watch(step.workflow)
    if how not in (BEGUN, BEGUN_AGAIN):
        return Begun(how)
    values = {number: payload.loads(value) for number, value in zip(numbers, rest, strict=False) if value}
    return Begun(how, values, [_failure(*parts) for parts in batched(rest[len(numbers) :], 3)])


def finish(step: StepCall, value: bytes, added: Sequence[Node] = ()) -> Flow[int]:
    """Record that a step succeeded, add the jobs that are due now, and return how. A repeat is safe.

    The first of the nodes that it added is the group of all others.
    """
    how, page = yield from end(step, "successful", value, added=added)
    failpoints.reach("step_recorded")
    yield from send(step.workflow, step.number, page)
    failpoints.reach("step_sent")
    return how


def fail(step: StepCall, error: str, *, expected: bytes = b"") -> Flow[int]:
    """Record that a step failed for good, add the jobs that are due now, and return how. A repeat is safe."""
    how, page = yield from end(step, "failed", error[:LONGEST_ERROR].encode("utf-8", "backslashreplace"), expected)
    yield from send(step.workflow, step.number, page)
    return how


def end(
    step: StepCall, outcome: str, text: bytes, expected: bytes = b"", added: Sequence[Node] = ()
) -> Flow[tuple[int, list[Any]]]:
    """Record the end of a step. Return how, and the steps that are due now, for send()."""
    ttls = _ttl_ms(failed=False), _ttl_ms(failed=True)
    args = (step.number, outcome, text, expected, *ttls, sum(node.job is not None for node in added))
    how, *page = yield END(workflow_key(step.workflow), *args, *_flat(added))
    return how, page


def cancel(id: str) -> Flow[int]:
    """Cancel a workflow and the jobs of its steps. A repeat is safe. Raises UnknownWorkflow."""
    options = {"error": "The workflow of the job was cancelled.", "ttl_ms": _ttl_ms(failed=True)}
    how, *heads = yield _cancel(id, begins=True)
    while heads:
        jobs = [job for head in heads if (job := read_node(b"0", head).job)]
        if has("canceller"):  # else they find out as they begin
            yield Batch(
                [provided("canceller")(Queue(job.queue).key(""), job.id, **options) for job in jobs], lenient=True
            )
        _, *heads = yield _cancel(id, begins=True)
    if how == GONE:
        raise unknown(id)
    return int(how)


def retry(id: str) -> Flow[int]:
    """Let the steps that failed or were cancelled run again. Return how many. Raises UnknownWorkflow."""
    while len((yield _cancel(id, begins=False))) > 1:
        pass  # a caller that cancelled it may have died before the end
    retried = 0
    count, some, *page = yield RETRY(workflow_key(id), RETRIED)
    if count < 0:
        raise unknown(id)
    if some:
        yield watch(id)
    while some:
        retried += some
        yield from send(id, CALLER, page)
        if retried >= count:  # those that failed again since are not counted
            break
        _, some, *page = yield RETRY(workflow_key(id), min(RETRIED, count - retried))
    return retried


def watch(id: str) -> Call:
    """Return the step that has workers look at a workflow from now on."""
    return Call("ZADD", list_key("checked"), 0, id)


def send(id: str, owner: int, page: Sequence[Any]) -> Flow[None]:
    """Add the jobs of steps that are due, given as numbers and nodes, then those of further pages."""
    while page:
        nodes = [read_node(number, text) for number, text in batched(page, 2)]
        yield from put([node.job for node in nodes if node.job])
        page = yield CONFIRM(workflow_key(id), owner, *page[::2])


def put(jobs: Sequence[StepJob]) -> Flow[int]:
    """Add the jobs of steps, and return how many; one that is in its queue already is left as it is."""
    added = 0
    for some in batched(jobs, PUT):
        for job, count in zip(some, (yield Batch([_put(job) for job in some])), strict=True):
            added += count
            yield from signals.announcement(Queue, whole(job.queue), [job.id] * count)
    for name in {job.queue for job in jobs}:
        yield from enqueue.registered(Queue(name))
    return added


def _put(job: StepJob) -> ScriptCall:
    body = job.body
    if job.backend is not None:
        run_after = history.milliseconds(job.due) if job.due else None
        body = history.line(timezone.now(), run_after, job.backend) + body
    turn = calls.Turn(job.due, job.delay, job.priority, job.lane)
    return calls.put(Queue(job.queue).key(""), [(job.id, body)], turn, own=True)


def _failure(number: bytes, node: bytes, error: bytes) -> dict[str, str]:
    id = task = ""
    with suppress(ValueError):
        if job := read_node(number, node).job:
            id, task = job.id, message.task_of(job.body)
    return {"id": id, "task": task, "error": error.decode("utf-8", "replace")}


def _flat(nodes: Sequence[Node]) -> list[Any]:
    return [part for node in nodes for part in (node.number, node.waits, node.text())]


def unknown(id: str) -> UnknownWorkflow:
    """Return the error for a workflow that does not exist."""
    return UnknownWorkflow(f"There is no workflow {id}: its transaction is not committed yet, or it has expired.")


def _cancel(id: str, *, begins: bool) -> ScriptCall:
    """Return the step that cancels a workflow, or goes on with that, and some of its steps."""
    return CANCEL(workflow_key(id), _ttl_ms(failed=True), "cancelled with its workflow", CANCELLED_STEPS, int(begins))


def _ttl_ms(*, failed: bool) -> int:
    """Return for how many ms a workflow is stored after its end."""
    options = conf.section(QueueSettings)
    return int((options.FAILED_RESULT_TTL if failed else options.RESULT_TTL) * 1000)
