"""Where a holder is."""

import asyncio
import threading

from redis_kit.locks.renewal.renewer import stack_of


async def sleeping():
    await asyncio.sleep(10)


async def working():
    await sleeping()


def test_task_that_waits_shows_all_its_coroutines():
    async def main():
        task = asyncio.create_task(working())
        await asyncio.sleep(0)
        found = await asyncio.to_thread(stack_of, task, 0)
        task.cancel()
        return found, task

    found, task = asyncio.run(main())
    assert found.index("in working") < found.index("in sleeping")
    assert "has ended" in stack_of(task, 0)


def test_task_that_runs_shows_its_thread():
    async def main():
        return stack_of(asyncio.current_task(), threading.get_ident())

    assert "in main" in asyncio.run(main())


def test_thread_shows_its_frames_until_it_is_over():
    begun, release = threading.Event(), threading.Event()

    def busy_here():
        begun.set()
        release.wait(10)

    thread = threading.Thread(target=busy_here, name="worker 7")
    thread.start()
    begun.wait(10)
    found = stack_of(thread, thread.ident)
    release.set()
    thread.join()
    assert "in busy_here" in found
    assert stack_of(thread, thread.ident) == "(the thread worker 7 has ended)"
