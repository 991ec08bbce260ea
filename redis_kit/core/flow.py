"""Logic that talks to Redis, written once: a generator that yields steps and gets their replies."""

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

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
