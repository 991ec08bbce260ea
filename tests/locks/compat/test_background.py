"""Work in the background of an event loop."""

import asyncio
import gc

from redis_kit.locks.compat import background
from redis_kit.locks.compat.background import AsyncRepeated


class Step:
    """A step that does not end by itself. It notes its beginning and its end."""

    def __init__(self):
        self.begun, self.events = asyncio.Event(), []

    async def arun(self, client):
        self.events.append("begun")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append("ended")


def test_run_that_starts_while_the_loop_cancels_its_tasks_ends_with_it(caplog):
    async def main():
        step = Step()

        def flow():
            yield step

        async def ends_late():
            try:
                await asyncio.Event().wait()
            finally:  # asyncio.run() has cancelled all tasks, and waits for this one
                AsyncRepeated(flow, None, after=0)
                await step.begun.wait()

        task = asyncio.create_task(ends_late())
        await asyncio.sleep(0)
        return step, task

    step, _ = asyncio.run(main())
    assert step.events == ["begun", "ended"]
    gc.collect()
    assert not caplog.records  # asyncio logs each task that is pending as its loop is closed


def test_no_run_starts_once_the_loop_has_ended_them():
    async def main():
        step = Step()

        def flow():
            yield step

        repeated = AsyncRepeated(flow, None, after=60)
        await asyncio.get_running_loop().shutdown_asyncgens()
        repeated._start()
        await asyncio.sleep(0)
        return step.events

    assert asyncio.run(main()) == []


class Failing:
    """A step that fails at first, with an error that is not of redis-py."""

    def __init__(self):
        self.runs, self.carried_out = 0, asyncio.Event()

    async def arun(self, client):
        self.runs += 1
        if self.runs == 1:
            raise RuntimeError("a subclass of the client failed")
        self.carried_out.set()


def test_run_that_fails_with_any_error_is_repeated_and_logged(monkeypatch, caplog):
    monkeypatch.setattr(background, "RENEWAL_RETRY", 0.01)

    async def main():
        step = Failing()

        def flow():
            yield step

        AsyncRepeated(flow, None, after=0)
        await asyncio.wait_for(step.carried_out.wait(), 10)

    asyncio.run(main())
    assert caplog.messages == ["A lease was not renewed; retrying: a subclass of the client failed"]
