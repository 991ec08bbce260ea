"""Flows: one description, carried out by both drivers."""

import asyncio
import inspect

import pytest

from redis_kit.core import flow


class Echo:
    def __init__(self, value):
        self.value = value

    def run(self, client):
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    async def arun(self, client):
        return self.run(client)


def doubled():
    return 2 * (yield Echo(3)) + (yield Echo(1))


def cleaning(seen):
    try:
        yield Echo(ValueError("lost"))
    except ValueError:
        seen.append((yield Echo("cleaned")))
        raise


def drive(kind, steps):
    return flow.run(steps, None) if kind == "sync" else asyncio.run(flow.arun(steps, None))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_replies_come_back_to_the_flow(kind):
    assert drive(kind, doubled()) == 7


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_error_is_raised_at_the_yield_where_the_flow_can_clean_up(kind):
    seen = []
    with pytest.raises(ValueError, match="lost"):
        drive(kind, cleaning(seen))
    assert seen == ["cleaned"]


def test_a_cancelled_task_lets_the_flow_clean_up():
    seen = []

    class Forever:
        async def arun(self, client):
            await asyncio.sleep(60)

    def waiting():
        try:
            yield Forever()
        except asyncio.CancelledError:
            seen.append((yield Echo("cleaned")))
            raise

    async def main():
        task = asyncio.create_task(flow.arun(waiting(), None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == ["cleaned"]


class Runner:
    """What carries out flows, as a Primitive does."""

    def run_flow(self, steps, **answers):
        return (flow.run(steps, None), answers)

    async def arun_flow(self, steps, **answers):
        return (await flow.arun(steps, None), answers)

    @flow.operation
    def double(self, number: int, *, more: int = 0) -> "flow.Flow[list[int]]":
        """Double a number."""
        return [2 * (yield Echo(number)) + more]

    @flow.operation(if_closed=0)
    def answered(self) -> flow.Flow[int]:
        """Give an answer."""
        return (yield Echo(1))

    adouble = flow.twin(double)
    aanswered = flow.twin(answered)


@flow.operation(over=lambda using: Runner() if using == "other" else pytest.fail(using))
def echo(value: str, *, using: str = "default") -> flow.Flow[str]:
    """Echo a value."""
    return (yield Echo(value))


aecho = flow.twin(echo)


def test_operation_and_its_twin_run_one_flow():
    runner = Runner()
    assert runner.double(3, more=1) == asyncio.run(runner.adouble(3, more=1)) == ([7], {})
    assert runner.answered() == asyncio.run(runner.aanswered()) == (1, {"if_closed": 0})
    assert echo("a", using="other") == asyncio.run(aecho("a", using="other")) == ("a", {})


def test_operation_looks_like_a_function_that_returns_the_result():
    for name, run in (("double", Runner.double), ("adouble", Runner.adouble)):
        assert str(inspect.signature(run)) == "(self, number: int, *, more: int = 0) -> 'list[int]'"
        assert (run.__name__, run.__qualname__) == (name, f"Runner.{name}")
    assert inspect.getdoc(Runner.double) == "Double a number."
    assert inspect.getdoc(aecho) == "See echo()."
    assert inspect.iscoroutinefunction(aecho)
    assert not inspect.iscoroutinefunction(echo)
    with pytest.raises(TypeError, match=r"Runner\.double\(\) got an unexpected keyword argument 'numer'"):
        Runner().double(3, numer=1)
