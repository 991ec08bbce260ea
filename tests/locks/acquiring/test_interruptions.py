"""Attempts that are cut off in the middle leave nothing that lasts longer than their lease."""

import asyncio
import random
from time import monotonic

import pytest

from redis_kit.locks import Lock, Semaphore
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(5)

CANCELS = 1000
SWEEP = """
import signal
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
for name in "ab":  # loads the scripts and starts the thread
    Lock(name, timeout=0.5, renew=True).acquire().release()
longest = 0.0
for step in range(200):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, (step + 1) * 0.0001 / 10)
            with Lock("a", timeout=0.5):
                pass
            with Lock("b", timeout=0.5, renew=True, max_hold=0.6):
                pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # an interrupt may come even here
    except KeyboardInterrupt:
        pass
    except LockLost:
        pass  # it was given back in the middle of the block's end
    began = time.monotonic()
    for name in "ab":
        lease = Lock(name, timeout=0.5).acquire(blocking_timeout=2)
        if lease is None:
            sys.exit(f"step {step}: {name} stayed taken")
        lease.release()
    longest = max(longest, time.monotonic() - began)
print(longest)
"""


@pytest.mark.parametrize(
    "make", [lambda **o: Lock("a", **o), lambda **o: Semaphore("a", 1, **o)], ids=["lock", "semaphore"]
)
def test_a_thousand_random_cancels_leave_nothing(kit, make):
    chance = random.Random(CANCELS)

    async def attempt():
        async with make(timeout=1):
            await asyncio.sleep(chance.random() / 2000)

    async def main():
        tasks = set()
        for _ in range(CANCELS):
            tasks.add(asyncio.create_task(attempt()))
            await asyncio.sleep(chance.random() / 1000)
            if len(tasks) > 4:
                tasks.pop().cancel()
            tasks = {task for task in tasks if not task.done()}
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, (asyncio.CancelledError, type(None))) for one in ended)
        began = monotonic()
        await (await make().aacquire()).arelease()
        return monotonic() - began

    assert asyncio.run(main()) < 1.2
    wait_for(lambda: not [key for key in kit.keys() if key.endswith(("waiters", "holder", "holders", "queue"))])


def test_interrupts_leave_nothing_longer_than_the_lease_or_max_hold(program):
    process = program(SWEEP)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert float(output) < 1.3
