"""Workflows: chains and groups of tasks, whose steps begin when those before them have ended."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from redis_kit.queues.engine.feature import Duty, Feature, Supervision


class Workflows(Feature):
    """A step of a workflow asks it before its task runs, and reports the end."""

    name = "workflows"
    panels = ("redis_kit.queues.features.workflows.page.WorkflowsPanel",)
    message_fields = {2: "workflow"}
    begin = ("redis_kit.queues.features.workflows.middleware.WorkflowSteps",)
    task = ("redis_kit.queues.features.workflows.middleware.StepResults",)
    provides = {"step_class": "redis_kit.queues.features.workflows.parts.Step"}

    def death_hook(self, source: Any, body: bytes) -> Callable[[str], object] | None:
        """Return the call that reports the failure of a step; None for another job."""
        from redis_kit.queues.features.workflows.step import step_of

        step = step_of(body)
        if step is None:
            return None
        from redis_kit.queues.features.workflows.middleware import report_failure

        return partial(report_failure, source, step)

    def job_lines(self, body: bytes) -> Iterator[Any]:
        """Yield a link to the workflow of a step."""
        from redis_kit.queues.features.workflows.page import link
        from redis_kit.queues.features.workflows.step import step_of

        if step := step_of(body):
            yield link(step.workflow)

    def duties(self, supervisor: Supervision) -> Iterable[Duty]:
        """Return the one that repairs workflows."""
        from redis_kit.queues.features.workflows.caretaker import Caretaker

        return (Caretaker(supervisor.queues[0].run_flow),)
