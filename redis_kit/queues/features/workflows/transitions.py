"""The life of a workflow, as flows: it starts, its steps begin and end, it is cancelled or retried.

The workflow is changed first, in one script; then the steps that became due are put into their queues, and that is
noted. A process may die in between: the job of the step that ended is delivered again, and sends them; and workers
look after workflows from time to time.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from django.utils import timezone

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues import signals
from redis_kit.queues.engine import calls as queue_calls
from redis_kit.queues.engine import enqueue, history, message, payload
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.features.workflows import calls
from redis_kit.queues.features.workflows.calls import Node, StepJob
from redis_kit.queues.features.workflows.keys import list_key, workflow_key
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import whole
from redis_kit.queues.worker.shared import failpoints

PUT = 100  # jobs in one round trip
RETRIED = 200  # steps in one call
CALLER = 0  # made due by no step
GONE, BEGUN, BEGUN_AGAIN, ENDED, CANCELLED, NOT_DUE, TOO_LARGE = range(7)
RECORDED, IGNORED = 1, 2


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
    yield calls.REGISTER(list_key(), id, calls.MOST_LISTED, calls.FIRST_CHECK)
    steps, page = sum(node.job is not None for node in nodes), []
    for chunk in enqueue.chunks(nodes, lambda node: len(node.job.body) if node.job else 0):
        count = steps if chunk[-1] is nodes[-1] else 0
        args = (name, count, nodes[-1].number + 1, calls.NEVER_STARTED, *_flat(chunk))
        page = yield calls.CREATE(workflow_key(id), *args)
    yield from send(id, CALLER, page)


def begin(step: StepCall) -> Flow[Begun]:
    """Begin a step. If it has ended before, add the jobs again that became due with its end."""
    group, numbers = step.group(), step.numbers()
    results = (calls.MOST_RESULTS, "" if group is None else group, *numbers)
    how, *rest = yield calls.BEGIN(workflow_key(step.workflow), step.number, *results)
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
    how, page = yield from end(step, "failed", error[: calls.ERROR].encode("utf-8", "backslashreplace"), expected)
    yield from send(step.workflow, step.number, page)
    return how


def end(
    step: StepCall, outcome: str, text: bytes, expected: bytes = b"", added: Sequence[Node] = ()
) -> Flow[tuple[int, list[Any]]]:
    """Record the end of a step. Return how, and the steps that are due now, for send()."""
    ttls = calls.result_ttl_ms(failed=False), calls.result_ttl_ms(failed=True)
    steps, first = sum(node.job is not None for node in added), added[0].number if added else ""
    args = (step.number, outcome, text, expected, *ttls, steps, first)
    how, *page = yield calls.END(workflow_key(step.workflow), *args, *_flat(added))
    return how, page


def cancel(id: str) -> Flow[int]:
    """Cancel a workflow and the jobs of its steps. A repeat is safe. Raises UnknownWorkflow."""
    options = {"error": "The workflow of the job was cancelled.", "ttl_ms": calls.result_ttl_ms(failed=True)}
    how, *heads = yield calls.cancel(id, begins=True)
    while heads:
        jobs = [job for head in heads if (job := calls.read_node(b"0", head).job)]
        if has("canceller"):  # else they find out as they begin
            yield Batch([provided("canceller")(base_of(job.queue), job.id, **options) for job in jobs], lenient=True)
        _, *heads = yield calls.cancel(id, begins=True)
    if how == GONE:
        raise calls.unknown(id)
    return int(how)


def retry(id: str) -> Flow[int]:
    """Let the steps that failed or were cancelled run again. Return how many. Raises UnknownWorkflow."""
    while len((yield calls.cancel(id, begins=False))) > 1:
        pass  # a caller that cancelled it may have died before the end
    retried = 0
    count, some, *page = yield calls.RETRY(workflow_key(id), RETRIED)
    if count < 0:
        raise calls.unknown(id)
    if some:
        yield watch(id)
    while some:
        retried += some
        yield from send(id, CALLER, page)
        if retried >= count:  # those that failed again since are not counted
            break
        _, some, *page = yield calls.RETRY(workflow_key(id), min(RETRIED, count - retried))
    return retried


def watch(id: str) -> Call:
    """Return the step that has workers look at a workflow from now on."""
    return Call("ZADD", list_key("checked"), 0, id)


def send(id: str, owner: int, page: Sequence[Any]) -> Flow[None]:
    """Add the jobs of steps that are due, given as numbers and nodes, then those of further pages."""
    while page:
        nodes = [calls.read_node(number, text) for number, text in batched(page, 2)]
        yield from put([node.job for node in nodes if node.job])
        page = yield calls.CONFIRM(workflow_key(id), owner, *page[::2])


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


def _put(job: StepJob) -> Any:
    relative, due = job.due.startswith("+"), int(job.due)
    body = job.body
    if job.backend is not None:
        run_after = history.milliseconds(due) if due and not relative else None
        body = history.line(timezone.now(), run_after, job.backend) + body
    turn = queue_calls.Turn(0 if relative else due, due if relative else 0, job.priority, job.lane)
    return queue_calls.put(base_of(job.queue), [(job.id, body)], turn, own=True)


def base_of(queue: str) -> str:
    """Return what the keys of a queue begin with."""
    return Queue(queue).key("")


def _failure(number: bytes, node: bytes, error: bytes) -> dict[str, str]:
    id = task = ""
    with suppress(ValueError):
        if job := calls.read_node(number, node).job:
            id, task = job.id, message.task_of(job.body)
    return {"id": id, "task": task, "error": error.decode("utf-8", "replace")}


def _flat(nodes: Sequence[Node]) -> list[Any]:
    return [part for node in nodes for part in (node.number, node.waits, node.text())]
