"""Replies that get lost, to every verb of every kind of lock: none may leave a lock stuck, or held twice.

    python -m tests.chaos locks.lost_replies 50

In each round a caller for each kind and each way to call it uses the same lock object as in the round before. Then the
way to the server breaks, and each calls a verb. As soon as the server answers again, each lock is taken by its caller
or by a rival that comes another way, in either order.
"""

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.locks import AlreadyHeld
from redis_kit.locks.inspection import force_release
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage
from tests.chaos.locks.support.bugs import Seeds
from tests.chaos.locks.support.lock_factories import ENDLESS, MAKERS, parts
from tests.fixtures.process import wait_for
from tests.fixtures.proxy import Mode, Proxy

SOON = 2.0  # seconds after an answer of the server within which a lock that nobody holds is free
SHORT = 0.6  # seconds of a lease that is renewed while replies get lost
FAULTS: tuple[Mode, ...] = ("drop_replies", "blackhole", "cut_reply", "rst")
VERBS = ("acquire", "wait", "release", "block", "extend", "reacquire", "renewal", "force_release")


KINDS = ("overlaps", "handed out again", "stuck")  # of violations


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    rounds: int = 50
    kind: str = option("all", "of lock", choices=("all", *MAKERS))
    soon: float = SOON
    timeout: float = option(0.5, "seconds for a reply")
    bug: str = option("", "put this one in")


@dataclass
class Notes:
    """What a run came to so far."""

    calls: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0  # seconds from the server's first answer until a rival had the lock
    violations: list[str] = field(default_factory=list)


def run(plan: Plan) -> Outcome:
    """Lose replies to all verbs of all locks."""
    seeds = Seeds()
    with stage(READ_TIMEOUT=plan.timeout, CONNECT_TIMEOUT=plan.timeout) as place:
        proxy = place.proxy()
        place.kit["CONNECTIONS"]["direct"] = place.kit["CONNECTIONS"]["default"]
        place.connect(proxy.connection)
        seeds.sow(plan.bug)
        try:
            notes = Rounds(plan, proxy).run()
        finally:
            seeds.sow("")
    called = ", ".join(f"{verb} {notes.failed[verb]} of {count}" for verb, count in sorted(notes.calls.items()))
    found = {kind: [text for text in notes.violations if text.startswith(kind)] for kind in KINDS}
    figures = f"{plan.rounds} rounds; failed: {called}; all free within {notes.longest:.2f} s"
    return Outcome(figures, found, calls=notes.calls, failed=notes.failed)


class Caller:
    """A caller of the verbs of one kind of lock, in one of the two ways, and a rival with another connection."""

    def __init__(self, kind: str, *, run_async: bool, chance: random.Random) -> None:
        self.kind, self.run_async, self.chance = kind, run_async, chance
        self.name = f"{kind} {'async' if run_async else 'sync'}"
        self.verb, self.held, self.over = "", None, list[Any]()
        self._runner: asyncio.Runner | None = None
        self._count = itertools.count()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Go on with a lock of another name: what was wrong with this one is told once."""
        make, name = MAKERS[self.kind], f"{self.name} {next(self._count)}"
        self.endless, self.short = make(name, timeout=ENDLESS), make(name, timeout=SHORT, renew=True)
        self.rival = make(name, timeout=ENDLESS, using="direct")

    def prepare(self) -> None:
        """Choose a verb, and take the lock if that needs one that is held."""
        if self.run_async and self._runner is None:
            self._runner = asyncio.Runner()
        self.verb, self.over = self.chance.choice(VERBS), []
        self.lock = self.short if self.verb == "renewal" else self.endless
        taken = self.verb not in ("acquire", "wait")
        self.held = wait_for(self._taken) if taken else None

    def _taken(self) -> Any:
        with contextlib.suppress(RedisKitError):  # the breaker may be open yet
            return self._call(self.lock.acquire, blocking_timeout=5)
        return None

    def break_it(self) -> bool:
        """Call the verb while the way to the server is broken; return whether that failed."""
        try:
            self._verb()
        except AlreadyHeld:
            raise
        except (RedisKitError, LookupError):
            return True
        return False

    def _verb(self) -> None:
        if self.verb == "acquire":
            self.held = self._call(self.lock.acquire, blocking=False)
        elif self.verb == "wait":
            self.held = self._call(self.lock.acquire, blocking_timeout=0.3)
        elif self.verb == "release":
            self._let_go()
        elif self.verb == "block":
            over, self.held = self.held, None
            self.over.append(over)
            self._call(over.__exit__, None, None, None)
        elif self.verb == "renewal":
            sleep(self.chance.uniform(0.3, 0.8) * SHORT)
        elif self.verb == "force_release":
            for part in parts(self.lock):
                force_release(part.name, **_kind(part))
        else:
            args = (ENDLESS,) if self.verb == "extend" else ()
            self._call(self.held.extend, *args)

    def check(self, soon: float, began: float) -> Iterator[str]:
        """Compete with the rival for what may be free; yield what is wrong."""
        if self.held and self.verb == "force_release":
            # It can't know of that, so it and a rival may both count on the lock until it asks.
            self._end()
        elif self.held:
            if self._rival(0.0):
                if self.held.held:
                    yield f"overlaps: {self}: the rival got it while the caller counts on it"
                self.rival.release()
            self._end()
            began = monotonic()
        first = self.chance.random() < 0.5
        if first:
            yield from self._again()
        if not self._rival(max(began + soon - monotonic(), 0.01)):
            yield f"stuck: {self}: not free after {monotonic() - began:.1f} s"
            return
        yield from self._again(taken=True)
        self.rival.release()

    def _again(self, *, taken: bool = False) -> Iterator[str]:
        try:
            lease = self._call(self.lock.acquire, blocking_timeout=0.02)
        except AlreadyHeld as error:
            yield f"handed out again: {self}: {error}"
            return
        except RedisKitError:  # a connection that was cut, or the breaker
            return
        if not lease:
            return
        if any(lease is old or _tokens(lease) & _tokens(old) for old in self.over):
            yield f"handed out again: {self}: a lease whose release was asked for"
        if taken and lease.held:
            yield f"overlaps: {self}: the caller got it while the rival holds it"
        with contextlib.suppress(RedisKitError):
            self._call(lease.release)

    def _let_go(self) -> None:
        over, self.held = self.held, None
        self.over.append(over)
        self._call(over.release)

    def _end(self) -> None:
        with contextlib.suppress(RedisKitError):  # it may be lost, or the breaker be open
            self._let_go()

    def _rival(self, patience: float) -> Any:
        end = monotonic() + patience
        while True:
            try:
                return self.rival.acquire(blocking_timeout=max(end - monotonic(), 0.0))
            except RedisUnavailable:  # a machine that is busy
                if monotonic() > end:
                    return None

    def _call(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        if self._runner is None:
            return method(*args, **kwargs)
        name = method.__name__
        twin = getattr(method.__self__, f"__a{name[2:]}" if name.startswith("__") else f"a{name}")

        async def awaited() -> Any:
            return await twin(*args, **kwargs)

        return self._runner.run(awaited())

    def close(self) -> None:
        """Close its event loop."""
        if self._runner:
            self._runner.close()

    def __str__(self) -> str:
        return f"{self.name}, {self.verb}"


def _tokens(lease: Any) -> set[str]:
    return {one.token for one in getattr(lease, "leases", (lease,))}


def _kind(part: Any) -> dict[str, Any]:
    within = [level.name for level in getattr(part, "levels", (part,))[:-1]]
    return {"kind": part.kind, **({"within": within} if within else {})}


class Rounds:
    """A proxy, the callers, and one thread for each of them, in which its tasks or calls run."""

    def __init__(self, plan: Plan, proxy: Proxy) -> None:
        self.plan, self.proxy = plan, proxy
        self.chance = random.Random(plan.seed)
        self.callers = [
            Caller(kind, run_async=run_async, chance=random.Random(f"{plan.seed} {kind} {run_async}"))
            for kind, run_async in itertools.product(MAKERS if plan.kind == "all" else (plan.kind,), (False, True))
        ]
        self._threads = [ThreadPoolExecutor(1) for _ in self.callers]

    def run(self) -> Notes:
        """Run all rounds."""
        notes = Notes()
        try:
            for _ in range(self.plan.rounds):
                self._round(notes)
        finally:
            self._each(Caller.close)
            for thread in self._threads:
                thread.shutdown()
        return notes

    def _round(self, notes: Notes) -> None:
        self._each(Caller.prepare)
        with self.proxy.fault(self.chance.choice(FAULTS)):
            failed = self._each(Caller.break_it)
        began = monotonic()
        found = self._each(lambda caller: list(caller.check(self.plan.soon, began)))
        notes.longest = max(notes.longest, monotonic() - began)
        for caller, one, wrong in zip(self.callers, failed, found, strict=True):
            notes.calls[caller.verb] += 1
            notes.failed[caller.verb] += bool(one)
            notes.violations += wrong
            if wrong:
                caller.begin_anew()

    def _each(self, work: Callable[[Caller], Any]) -> list[Any]:
        futures = [thread.submit(work, one) for thread, one in zip(self._threads, self.callers, strict=True)]
        return [future.result(60) for future in futures]
