"""The dashboard's panel of workflows: a list of them, and a page about one."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.logs.masking import without_secrets
from redis_kit.core.panels import (
    MOST_ROWS,
    Content,
    Field,
    Figure,
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
from redis_kit.queues.features.workflows import calls
from redis_kit.queues.features.workflows import diagram as graph
from redis_kit.queues.features.workflows import workflow as handles
from redis_kit.queues.features.workflows.diagram import STATES, ReadNode
from redis_kit.queues.features.workflows.keys import list_key, workflow_key
from redis_kit.queues.features.workflows.workflow import StepInfo, Workflow, WorkflowStatus
from redis_kit.queues.queue import Queue

SLUG = "workflows"
ORDER = ("failed", "cancelled", "running", "due", "waiting", "successful")
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
        status = workflow.status()
        listed: list[ReadNode] = workflow.run_flow(handles.nodes(workflow))
    except (UnknownWorkflow, InvalidValue) as error:
        yield Table(title, (), [], empty=str(error))
        return
    yield _table(title, [(id, status)], linked=False)
    ended = status.state != "running"
    yield graph.drawing(listed, ended=ended)
    yield _steps([step for _, step in listed if step], ended=ended)


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


def _steps(steps: list[StepInfo], *, ended: bool) -> Table:
    ordered = sorted(steps, key=lambda step: (ORDER.index(step.state) if step.state in ORDER else -1, step.number))
    rows = [_row(step, ended=ended) for step in ordered[:MOST_ROWS]]
    columns = (_("Job"), _("State"), _("Since"), _("Run time"), _("Error"))
    title = _("Steps")
    if len(ordered) > MOST_ROWS:
        title = _("Steps: the first %(count)d of %(total)d") % {"count": MOST_ROWS, "total": len(ordered)}
    return Table(title, columns, rows)


def _row(step: StepInfo, *, ended: bool) -> tuple[Any, ...]:
    job = Link(step.id, "queues", {"queue": step.queue, "id": step.id})
    run_time = None if step.seconds is None else timedelta(seconds=step.seconds)
    error = without_secrets(step.error) if step.error else None
    return Lines((step.task, job)), graph.state_of(step, ended=ended), step.since, run_time, error


class Listing(NamedTuple):
    """Some workflows whose status can be read, and how many are listed, expired ones among them."""

    workflows: list[tuple[str, WorkflowStatus]]
    total: int


def read(offset: int, limit: int) -> Flow[Listing]:
    """Return workflows from the latest on, of the last 10,000. Two round trips."""
    key = list_key("listed")
    total, ids = yield Batch([Call("ZCARD", key), Call("ZREVRANGE", key, offset, offset + limit - 1)])
    names = [id.decode("utf-8", "replace") for id in ids]
    statuses = [calls.READ_STATUS(workflow_key(id), 0) for id in names]
    replies = (yield Batch(statuses, lenient=True)) if names else []
    workflows = [
        (id, handles.read_status(Workflow(id), reply))
        for id, reply in zip(names, replies, strict=True)
        if reply and not isinstance(reply, RedisFailure)  # it may have expired: a supervisor takes it off the list
    ]
    return Listing(workflows, total)
