"""The dashboard's panel of workflows: a list of them, and a page about one with its drawing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.logs.masking import without_secrets
from redis_kit.core.panels import (
    MOST_ROWS,
    Box,
    Content,
    Field,
    Figure,
    Graph,
    Lines,
    Link,
    Meter,
    Pages,
    Panel,
    Search,
    Table,
    Tile,
)
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import grouped
from redis_kit.queues.dashboard.panel import MANAGE, button, hidden
from redis_kit.queues.errors import UnknownWorkflow
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.store import Node, list_key, workflow_key
from redis_kit.queues.features.workflows.workflow import (
    ReadNode,
    StepInfo,
    Workflow,
    WorkflowStatus,
    read_nodes,
    read_status,
)
from redis_kit.queues.queue import Queue

SLUG = "workflows"
OVER: Any = "over"  # the state of steps that wait when their workflow has ended
ORDER = ("failed", "cancelled", "running", "due", "waiting", OVER, "successful")
MOST_MEMBERS = 8  # of a group that is drawn
MOST_BOXES = 60
STATES = {
    "waiting": gettext_lazy("waiting"),
    "due": gettext_lazy("in its queue"),
    "running": gettext_lazy("running"),
    "successful": gettext_lazy("successful"),
    "failed": gettext_lazy("failed"),
    "cancelled": gettext_lazy("cancelled"),
    OVER: gettext_lazy("will not run"),
}
OF_STATES = {"running": ("cancel",), "failed": ("retry",), "cancelled": ("retry",)}


def link(workflow: str) -> Link:
    """Return the link from the page of a step's job."""
    return Link(_("Workflow %s") % workflow, SLUG, {"id": workflow})


class WorkflowsPanel(Panel):
    """The workflows, the latest first, and a page about each if the viewer may manage queues."""

    slug = SLUG
    title = gettext_lazy("Workflows")

    def search(self) -> Search | None:
        """Return the form to look up a workflow, if the viewer may manage queues: its page shows errors."""
        if not self.viewer.may(MANAGE):
            return None
        return Search(gettext_lazy("Look up"), (Field("id", gettext_lazy("Id of a workflow"), optional=True),))

    def content(self) -> Iterator[Content]:
        """Yield the workflow that was looked up, else the latest ones. Two round trips, and more for a large one."""
        id = self.viewer.asked.get("id", "").strip()
        if id and self.viewer.may(MANAGE):
            yield from _content_of(id)
            return
        if id:
            yield hidden()
        listing: Listing = Queue("default").run_flow(read((self.viewer.page - 1) * MOST_ROWS, MOST_ROWS))
        yield from _figures(listing)
        yield _table(gettext_lazy("Workflows"), listing.workflows, linked=self.viewer.may(MANAGE))
        yield from Pages.of(SLUG, self.viewer.page, listing.total)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the latest workflows. Two round trips."""
        return {"default": read(0, MOST_ROWS)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many of the latest workflows run and failed; None without workflows."""
        listing = replies["default"]
        return Tile.of(_figures(listing)) if listing.total else None

    @button(gettext_lazy("Cancel the workflow"), confirm=True)
    def cancel(self, value: str) -> str:
        """Cancel a running workflow and the jobs of its steps."""
        if Workflow(value).status().state != "running" or not Workflow(value).cancel():
            raise InvalidValue(_("Nothing was cancelled: the workflow %(id)s has ended.") % {"id": value})
        return _("Cancelled: workflow %(id)s.") % {"id": value}

    @button(gettext_lazy("Retry steps"), confirm=True, harmless=True)
    def retry(self, value: str) -> str:
        """Run the failed and cancelled steps of a workflow again."""
        count = Workflow(value).retry()
        if not count:
            text = _("Nothing was retried: no step of the workflow %(id)s has failed or was cancelled.")
            raise InvalidValue(text % {"id": value})
        return ngettext("Retried %(count)s step of %(id)s.", "Retried %(count)s steps of %(id)s.", count) % {
            "count": grouped(count),
            "id": value,
        }


def _content_of(id: str) -> Iterator[Content]:
    title = _("Workflow %s") % id
    try:
        workflow = Workflow(id)
        status, nodes = workflow.run_flow(read_nodes(workflow))
    except (UnknownWorkflow, InvalidValue) as error:
        yield Table(title, (), [], empty=str(error))
        return
    yield _table(title, [(id, status)], linked=False)
    if status.state != "running":
        nodes = [
            (node, step and (step._replace(state=OVER) if step.state == "waiting" else step)) for node, step in nodes
        ]
    yield drawing(nodes)
    yield _steps([step for _, step in nodes if step])


def _figures(listing: "Listing") -> Iterator[Figure]:
    statuses = [status for _id, status in listing.workflows]
    failed = sum(status.failed > 0 and status.state != "cancelled" for status in statuses)
    counts = {"count": grouped(len(statuses)), "total": grouped(listing.total)}
    hint = _("among %(count)s of %(total)s") % counts if listing.total > MOST_ROWS else ""
    yield Figure(gettext_lazy("Running"), sum(status.state == "running" for status in statuses), hint)
    yield Figure(gettext_lazy("With failed steps"), failed, hint, alarm=bool(failed))


def _table(title: Any, workflows: list[tuple[str, WorkflowStatus]], *, linked: bool) -> Table:
    columns = (_("Workflow"), _("State"), _("Steps done"), _("Failed or cancelled"), _("Created"), _("Ended"))
    rows = [
        (
            Lines((Link(id, SLUG, {"id": id}) if linked else id, status.name)),
            STATES.get(status.state, status.state),
            Meter(status.successful, status.steps, wanted=True),
            status.failed,
            status.created,
            status.ended,
        )
        for id, status in workflows
    ]
    offered = [OF_STATES.get(status.state, ()) for _, status in workflows]
    ids = [id for id, _ in workflows]
    empty = _("There are no workflows.")
    return Table(title, columns, rows, empty, actions=("cancel", "retry"), values=ids, offered=offered)


def _steps(steps: list[StepInfo]) -> Table:
    ordered = sorted(steps, key=lambda step: (ORDER.index(step.state) if step.state in ORDER else -1, step.number))
    rows = [
        (
            Lines((step.task, Link(step.id, "queues", {"queue": step.queue, "id": step.id}))),
            STATES.get(step.state, step.state),
            step.since,
            None if step.seconds is None else timedelta(seconds=step.seconds),
            without_secrets(step.error) if step.error else None,
        )
        for step in ordered[:MOST_ROWS]
    ]
    columns = (_("Job"), _("State"), _("Since"), _("Run time"), _("Error"))
    title = _("Steps")
    if len(ordered) > MOST_ROWS:
        title = _("Steps: the first %(count)d of %(total)d") % {"count": MOST_ROWS, "total": len(ordered)}
    return Table(title, columns, rows)


class Listing(NamedTuple):
    """Some workflows whose status can be read, and how many are listed, expired ones among them."""

    workflows: list[tuple[str, WorkflowStatus]]
    total: int


def read(offset: int, limit: int) -> Flow[Listing]:
    """Return workflows from the latest on, of the last 10,000. Two round trips."""
    key = list_key("listed")
    total, ids = yield Batch([Call("ZCARD", key), Call("ZREVRANGE", key, offset, offset + limit - 1)])
    names = [id.decode("utf-8", "replace") for id in ids]
    statuses = [store.READ_STATUS(workflow_key(id), 0) for id in names]
    replies = (yield Batch(statuses, lenient=True)) if names else []
    workflows = [
        (id, read_status(Workflow(id), reply))
        for id, reply in zip(names, replies, strict=True)
        if reply and not isinstance(reply, RedisFailure)  # it may have expired: a supervisor takes it off the list
    ]
    return Listing(workflows, total)


class _Drawing:
    """The boxes of a workflow by the number of their first node, and what follows each."""

    def __init__(self, nodes: Sequence[ReadNode]) -> None:
        self._nodes = {node.number: node for node, _ in nodes}
        self._members: defaultdict[int, list[Node]] = defaultdict(list)
        self._boxes: dict[int, int | None] = {}  # by node; None for a group whose members have boxes of their own
        self.steps: defaultdict[int, list[StepInfo]] = defaultdict(list)
        for node, step in nodes:  # a group comes before its members
            is_box = step is not None or (node.number > 0 and len(node.members) > MOST_MEMBERS)
            outer = self._boxes.get(node.group)
            self._boxes[node.number] = box = node.number if outer is None and is_box else outer
            if step and box is not None:
                self.steps[box].append(step)
            if node.number:
                self._members[node.group].append(node)
        self.after: dict[int, set[int]] = {number: set() for number in self.steps}
        for node in self._nodes.values():
            for end in (box for number in node.followers for box in self._first(number)):
                for begin in self._last(node):
                    if begin != end and begin in self.after and end in self.after:
                        self.after[begin].add(end)

    def _first(self, number: int) -> Iterable[int]:
        if number not in self._nodes:
            return ()
        if (box := self._boxes[number]) is not None:
            return (box,)
        return [box for member in self._nodes[number].member_numbers for box in self._first(member)]

    def _last(self, node: Node) -> Iterable[int]:
        if (box := self._boxes[node.number]) is not None:
            return (box,)
        ends = [member for member in self._members[node.number] if not member.dependents and member.callback is None]
        return [box for member in ends for box in self._last(member)]


def drawing(nodes: Sequence[ReadNode]) -> Graph:
    """Return the drawing of a workflow, without boxes if there would be too many."""
    drawing = _Drawing(nodes)
    total = Counter(str(STATES.get(step.state, step.state)) for _, step in nodes if step)
    summary = ", ".join(f"{text}: {count}" for text, count in sorted(total.items()))
    if len(drawing.after) > MOST_BOXES:
        return Graph(_("Graph"), [], [], _("Too large to be drawn. %(summary)s") % {"summary": summary})

    @cache
    def column_of(number: int) -> int:  # to the right of all boxes that it follows
        return max((column_of(other) + 1 for other, ends in drawing.after.items() if number in ends), default=0)

    rows = Counter[int]()
    boxes: list[Box] = []
    for number, steps in drawing.steps.items():
        column = column_of(number)
        boxes.append(_box(steps, column, rows[column]))
        rows[column] += 1
    places = {number: place for place, number in enumerate(drawing.steps)}
    arrows = [(places[begin], places[end]) for begin, ends in drawing.after.items() for end in sorted(ends)]
    return Graph(_("Graph"), boxes, arrows, summary)


def _box(steps: Sequence[StepInfo], column: int, row: int) -> Box:
    words: Counter[str] = Counter(step.state for step in steps)
    failed, count = words["failed"] + words["cancelled"], len(steps)
    if count == 1:
        (step,) = steps
        return Box(step.task.rpartition(".")[2], STATES.get(step.state, step.state), column, row, _tone(words, failed))
    name = ngettext("%(count)d step", "%(count)d steps", count) % {"count": count}
    text = _("%(done)d done, %(failed)d failed") if failed else _("%(done)d done")
    return Box(name, text % {"done": words["successful"], "failed": failed}, column, row, _tone(words, failed))


def _tone(words: Counter[str], failed: int) -> Literal["", "active", "good", "bad"]:
    if failed:
        return "bad"
    if words["due"] or words["running"]:
        return "active"
    return "good" if words["successful"] == words.total() else ""
