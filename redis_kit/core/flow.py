"""Logic that talks to Redis, written once: a generator that yields steps and gets their replies."""

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, get_args, overload

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Step(Protocol):
    """One thing to ask of a server, carried out by a client of either kind."""

    def run(self, client: Any, /) -> Any:
        """Carry out the step and return the reply."""

    async def arun(self, client: Any, /) -> Any:
        """See run()."""


Flow = Generator[Step, Any, Result]


def single(step: Step) -> Flow[Any]:
    """Return a flow of a single step, whose result is the reply."""
    return (yield step)


def run(flow: Flow[Result], client: Any) -> Result:
    """Carry out a flow. An exception of a step is raised in the flow at its ``yield``, so that it can clean up."""
    try:
        step = flow.send(None)
        while True:
            try:
                reply = step.run(client)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        result: Result = stop.value
        return result


async def arun(flow: Flow[Result], client: Any) -> Result:
    """See run(). A cancellation is raised in the flow too."""
    try:
        step = flow.send(None)
        while True:
            try:
                reply = await step.arun(client)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        result: Result = stop.value
        return result


Operation = Callable[Parameters, Result]
Twin = Callable[Parameters, Coroutine[Any, Any, Result]]


@overload
def operation(flow: Callable[Parameters, Flow[Result]], /, **answers: Any) -> Operation[Parameters, Result]: ...
@overload
def operation(
    *, over: Callable[[str], Any] | None = None, **answers: Any
) -> Callable[[Callable[Parameters, Flow[Result]]], Operation[Parameters, Result]]: ...
def operation(flow: Any = None, /, *, over: Callable[[str], Any] | None = None, **answers: Any) -> Any:
    """Decorate a method that returns a flow: a call carries it out, with ``self.run_flow()`` and these answers.

    A function does so too if ``over`` returns what runs it, of the connection that its argument ``using`` names. See
    twin() for the same in asynchronous code.
    """
    if flow is None:
        return lambda flow: _operation(flow, over, answers)
    return _operation(flow, over, answers)


def _operation(flow: Any, over: Any, answers: dict[str, Any]) -> Any:
    @wraps(flow)
    def run_method(self: Any, *args: Any, **options: Any) -> Any:
        return self.run_flow(flow(self, *args, **options), **answers)

    @wraps(flow)
    def run_function(*args: Any, **options: Any) -> Any:
        return over(options.get("using", "default")).run_flow(flow(*args, **options), **answers)

    run: Any = run_function if over else run_method
    run.parts = flow, over, answers
    flow.__annotations__["return"] = _result_type(flow.__annotations__["return"])  # what users and the docs see
    return run


def _result_type(annotation: Any) -> Any:
    result = annotation[annotation.index("[") + 1 : -1] if isinstance(annotation, str) else get_args(annotation)[-1]
    return None if result is type(None) else result


def twin(operation: Operation[Parameters, Result]) -> Twin[Parameters, Result]:
    """Return the asynchronous twin of an operation. Its name is that of the operation with an "a" before it."""
    parts: Any = operation
    flow, over, answers = parts.parts

    async def run_method(self: Any, *args: Any, **options: Any) -> Any:
        return await self.arun_flow(flow(self, *args, **options), **answers)

    async def run_function(*args: Any, **options: Any) -> Any:
        return await over(options.get("using", "default")).arun_flow(flow(*args, **options), **answers)

    run: Any = wraps(flow)(run_function if over else run_method)
    run.__name__, run.__doc__ = f"a{flow.__name__}", f"See {flow.__name__}()."
    run.__qualname__ = f"{flow.__qualname__.removesuffix(flow.__name__)}{run.__name__}"
    return run  # type: ignore[no-any-return]
