"""Flows: one description, carried out by both drivers."""

import asyncio

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
