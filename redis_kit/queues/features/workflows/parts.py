"""The parts of a workflow: steps, chains and groups. Nothing here reads or writes Redis."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.utils.module_loading import import_string

from redis_kit.core.text import shortened
from redis_kit.queues import framework
from redis_kit.queues.errors import InvalidWorkflow
from redis_kit.queues.tasks.task import Step as AnyPart

if TYPE_CHECKING:
    from redis_kit.queues.features.workflows.workflow import Workflow


START = "redis_kit.queues.features.workflows.start"  # by its name, as it imports this module and a Redis client


class Placeholder:
    """Stands in a step's arguments for a value that is known when the step begins."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


class Result(Placeholder):
    """The result of a part: of a chain that of its last part, of a group the list of its parts' results."""

    def __init__(self, part: "Part") -> None:
        super().__init__(f"{part!r}.result")
        self.part = part


#: Stands for the result of the part before: in a callback, the list of the results of its group.
previous: Any = Placeholder("previous")
#: Stands, in a callback, for the list of the steps of its group that failed: dicts with ``id``, ``task`` and ``error``.
failures: Any = Placeholder("failures")


class Part:
    """A step, a chain or a group. One object is one part of one workflow."""

    def __init__(self) -> None:
        self.waits_for: list[Part] = []

    @property
    def result(self) -> Any:
        """Return what stands for the result of this part in the arguments of another step, which then waits for it."""
        return Result(self)

    def after(self, *parts: AnyPart) -> Self:
        """Let this part wait for others of its group, too, and return it."""
        self.waits_for += map(checked, parts)
        return self

    def enqueue(self) -> "Workflow":
        """Start a workflow of this part and return it. In a transaction it starts after the commit, as tasks do.

        Three to four round trips, and two for each further 100 steps that can start at once. Raises InvalidWorkflow,
        InvalidArguments, NotSerializable, PayloadTooLarge before anything is sent, and RedisUnavailable. After a commit
        that one is logged in place of being raised.
        """
        started: Workflow = import_string(f"{START}.enqueue")(self)
        return started

    async def aenqueue(self) -> "Workflow":
        """See enqueue(). The workflow starts now: Django has no transactions in asynchronous code."""
        started: Workflow = await import_string(f"{START}.aenqueue")(self)
        return started

    def __or__(self, other: object) -> NoReturn:
        raise TypeError("Parts of a workflow can't be joined by |. Write chain(first, second).")


class Step(Part):
    """A call of a task that a workflow will make: ``send.step(42)``, ``send.using(priority=5).step(42)``."""

    def __init__(self, task: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self.task, self.args, self.kwargs = task, args, dict(kwargs)

    def __repr__(self) -> str:
        return f"<Step {self.task.module_path}>"


class Parts(Part):
    """Several parts, at least one."""

    def __init__(self, parts: Iterable[AnyPart]) -> None:
        super().__init__()
        self.parts = list(map(checked, parts))
        if not self.parts:
            raise InvalidWorkflow(f"A {type(self).__name__.lower()} needs at least one step.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.parts)}>"


class Chain(Parts):
    """Parts that run one after the other. If one fails, those after it do not run."""


class Group(Parts):
    """Parts that run side by side, each as soon as it may. See on_done() for what follows whatever they come to."""

    callback: Part | None = None

    def on_done(self, callback: AnyPart) -> "Group":
        """Let a step run, once, when no step of the group can run any more, also if some failed. Return the group.

        Its arguments may be ``previous``, the list of results with None for parts that failed, and ``failures``. The
        parts after the group then follow the callback.
        """
        if self.callback is not None:
            raise InvalidWorkflow(f"{self!r} has a callback already; pass a chain or a group to on_done().")
        self.callback = checked(callback)
        return self


def chain(*parts: AnyPart | Iterable[AnyPart]) -> Chain:
    """Return parts that run one after the other: steps, groups and other chains.

    No result is passed on by itself: ``previous`` among the arguments of a step stands for the result of the part
    before it. Raises InvalidWorkflow.
    """
    return Chain(_given(parts))


def group(*parts: AnyPart | Iterable[AnyPart]) -> Group:
    """Return parts that run side by side: steps, chains and other groups, given one by one or as one iterable.

    A step that has the ``result`` of another one of the group among its arguments waits for that one, as does one with
    ``after()``. Raises InvalidWorkflow.
    """
    return Group(_given(parts))


def checked(part: Any) -> Part:
    """Return a part. Raises InvalidWorkflow for anything else."""
    if isinstance(part, Part):
        return part
    if isinstance(part, framework.Task):
        given, hint = f"The task {part.module_path}", f"Write {part.name}.step(...)."
    elif hasattr(part, "wait_until_finished"):
        given, hint = shortened(part), "It has started already: leave out its enqueue()."
    else:
        given, hint = shortened(part), "Write task.step(...) in place of task(...), which runs the function now."
    raise InvalidWorkflow(f"{given} can't be a part of a workflow: only a step, chain or group can. {hint}")


def _given(parts: tuple[Any, ...]) -> Iterable[Any]:
    if len(parts) == 1 and isinstance(parts[0], Iterable) and not isinstance(parts[0], (str, bytes)):
        return parts[0]
    return parts
