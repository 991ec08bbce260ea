"""Two cancellations in a row at every await of every call of every kind of lock; none may leave a lease.

    python -m tests.chaos locks.cancellations

A call is driven await by await: the task is cancelled at one of them and at the next, or, as the scopes of anyio do, at
all that follow; in the moment in which it begins to wait (``early``), or when what it waits for has come (``late``).
"""

import asyncio
import itertools
import random
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisKitError
from redis_kit.locks import locked
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage
from tests.chaos.locks.support.bugs import Seeds
from tests.chaos.locks.support.lock_factories import ENDLESS, MAKERS, left

MOST = 60  # awaits of one call
RIVAL = 0.01  # seconds for which another one holds what is waited for
MOMENTS = ("early", "late")
FOLLOWING = {"next": 1, "all": MOST}  # how many awaits after the first one are cancelled too

Call = Callable[[Any, str], Coroutine[Any, Any, Any]]
CALLS: dict[str, Call] = {}


def _call(function: Call) -> Call:
    CALLS[function.__name__] = function
    return function


@_call
async def acquire(lock: Any, name: str) -> Any:
    """Take what is free."""
    return await lock.aacquire()


@_call
async def wait(lock: Any, name: str) -> Any:
    """Take what another one gives back a moment later."""
    return await lock.aacquire(blocking_timeout=30)


@_call
async def release(lock: Any, name: str) -> None:
    """Give back what was taken before."""
    await lock.arelease()


@_call
async def extend(lock: Any, name: str) -> None:
    """Make longer what was taken before."""
    await (lock if hasattr(lock, "aextend") else lock._own()).aextend(ENDLESS)


@_call
async def block(lock: Any, name: str) -> None:
    """Enter a block and leave it."""
    async with lock:
        await asyncio.sleep(0)


@_call
async def function(lock: Any, name: str) -> None:
    """Call a function that is locked."""
    await _function(name)()


def _function(name: str) -> Callable[[], Awaitable[None]]:
    @locked(name, timeout=ENDLESS, renew=True)
    async def work() -> None:
        await asyncio.sleep(0)

    return work


class Driven:
    """A coroutine whose awaits are counted; at some of them the task that awaits it is cancelled."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], places: range, *, late: bool) -> None:
        self._coroutine, self._places, self._late = coroutine, places, late
        self.count = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        while True:
            try:
                waited_for = step()
            except StopIteration as stop:
                return stop.value
            self.count += 1
            if self.count in self._places:
                self._cancel(waited_for)
            try:
                found = yield waited_for
            except BaseException as error:
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, found)

    def _cancel(self, waited_for: Any) -> None:
        task = asyncio.current_task()
        assert task
        if self._late and waited_for is not None:
            waited_for.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be tried."""

    kind: str = option("all", "of lock", choices=("all", *MAKERS))
    call: str = option("all", "of its methods", choices=("all", *CALLS))
    calls: Sequence[str] = ()
    share: float = option(1.0, "of all trials, chosen at random")
    patience: float = option(2.0, "seconds until what is left counts as such")
    bug: str = option("", "put this one in")


@dataclass
class Notes:
    """What a run came to so far."""

    trials: int = 0
    cancelled: int = 0
    longest: float = 0.0  # seconds until nothing was left


def run(plan: Plan) -> Outcome:
    """Try all that a plan names."""
    seeds, notes = Seeds(), Notes()
    with stage() as place, place.server.client() as client:
        seeds.sow(plan.bug)
        found = asyncio.run(_try_all(plan, client, notes))
        seeds.sow("")
    counts = f"{notes.trials:,} trials, {notes.cancelled:,} cancelled"
    return Outcome(f"{counts}; all free within {notes.longest:.2f} s", found, cancelled=notes.cancelled)


async def _try_all(plan: Plan, client: Any, notes: Notes) -> dict[str, list[str]]:
    """Return the leases that were left, by the kind of lock; ``client`` looks at the server past the kit."""
    chance, found = random.Random(plan.seed), {}
    for kind in MAKERS if plan.kind == "all" else (plan.kind,):
        found[kind] = []
        for call in plan.calls or (CALLS if plan.call == "all" else (plan.call,)):
            if call == "function" and kind != "lock":
                continue
            awaits, _ = await _try(Trial(kind, call, range(0), late=False), plan, client, Notes())
            for trial in trials(kind, call, min(awaits, MOST)):
                if chance.random() < plan.share:
                    found[kind] += (await _try(trial, plan, client, notes))[1]
    return found


@dataclass(frozen=True)
class Trial:
    """One call that is cancelled at some of its awaits."""

    kind: str
    call: str
    places: range
    late: bool

    def __str__(self) -> str:
        count = len(self.places)
        return f"{self.kind}, {self.call}: {count} from await {self.places.start} {'late' if self.late else 'early'}"


def trials(kind: str, call: str, awaits: int) -> Iterator[Trial]:
    """Yield each way to cancel a call of so many awaits."""
    for first, following, moment in itertools.product(range(1, awaits + 1), FOLLOWING.values(), MOMENTS):
        yield Trial(kind, call, range(first, first + following + 1), moment == "late")


async def _try(trial: Trial, plan: Plan, client: Any, notes: Notes) -> tuple[int, list[str]]:
    """Carry a trial out, and return how many awaits there were, and what it left."""
    name = secrets.token_hex(6)
    make = MAKERS[trial.kind]
    lock = make(name, timeout=ENDLESS)
    driven = Driven(CALLS[trial.call](lock, name), trial.places, late=trial.late)

    async def work() -> None:
        held = await lock.aacquire() if trial.call in ("release", "extend") else None
        try:
            held = await driven or held
        finally:
            if trial.call != "release" and held:  # what a call leaves to its caller
                await held.arelease()

    rival = await _rival(make, name) if trial.call == "wait" else None
    task = asyncio.create_task(work())
    if rival:
        await asyncio.sleep(RIVAL)
        await rival.arelease()
    (found,) = await asyncio.gather(task, return_exceptions=True)
    notes.trials += 1
    notes.cancelled += isinstance(found, asyncio.CancelledError)
    if isinstance(found, BaseException) and not isinstance(found, (asyncio.CancelledError, RedisKitError)):
        raise found
    began = monotonic()
    while (keys := left(client, lock)) and monotonic() - began < plan.patience:  # noqa: ASYNC110 -- others release it
        await asyncio.sleep(0.002)
    notes.longest = max(notes.longest, monotonic() - began)
    return driven.count, [f"{trial}: {', '.join(keys)}"] if keys else []


async def _rival(make: Callable[..., Any], name: str) -> Any:
    return await make(name, timeout=ENDLESS).aacquire()
