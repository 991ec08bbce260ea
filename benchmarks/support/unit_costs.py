"""The cost of one job, lock, decision, view and sign-in: on the server, in the client, on the network, in memory."""

import time
from collections.abc import Callable
from datetime import date, timedelta
from itertools import count
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from benchmarks.support.scale import UnitCost
from benchmarks.support.workers.server import Server
from redis_kit.locks import Lock
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.queues import Queue
from redis_kit.signins.days import Moment
from redis_kit.signins.segments import SignInStore
from redis_kit.signins.users import SignInUser
from redis_kit.throttling import Throttle

ROUNDS = 15
SLICE = 0.15  # seconds
BATCH = 100  # jobs in a call of a worker
VIEWS = 500  # in a batch, as a busy process sends them
STORED = 10_000  # things whose memory is measured
BARE = "for comparison: a script, return 1"
DAY = date(2026, 1, 1)


class Operation(NamedTuple):
    """A call, of how many operations it consists, and what stores so many things: None if it stores none."""

    call: Callable[[], object]
    worth: int = 1
    store: Callable[[int], object] | None = None


def unit_costs(server: Server) -> dict[str, UnitCost]:
    """Return the least cost of each operation among slices in turn: other processes of the machine only add to it."""
    operations = {BARE: _bare(server)} | _operations()
    slices: dict[str, list[UnitCost]] = {name: [] for name in operations}
    for _ in range(ROUNDS):
        for name, operation in operations.items():
            slices[name].append(_slice(server, operation))
    stored = {name: _stored(server, operation) for name, operation in operations.items()}
    least = {name: UnitCost(*map(min, zip(*each, strict=True))) for name, each in slices.items()}
    return {name: cost._replace(stored=stored[name]) for name, cost in least.items()}


def _slice(server: Server, operation: Operation) -> UnitCost:
    operation.call()
    before, own, calls, end = _usage(server), time.process_time(), 0, time.perf_counter() + SLICE
    while time.perf_counter() < end:
        operation.call()
        calls += 1
    own, after, done = time.process_time() - own, _usage(server), calls * operation.worth
    return UnitCost((after[0] - before[0]) / done * 1e6, own / done * 1e6, (after[1] - before[1]) / done)


def _usage(server: Server) -> tuple[float, float]:
    """Return the processor time of the server's main thread in s, and the bytes of its network."""
    info: dict[str, Any] = server.client.info("everything")
    processor = info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]
    return processor, info["total_net_input_bytes"] + info["total_net_output_bytes"]


def _stored(server: Server, operation: Operation) -> float:
    if operation.store is None:
        return 0.0
    server.flush()
    operation.store(1)  # what all things share
    before = server.used()
    operation.store(STORED)
    return (server.used() - before) / STORED


def _bare(server: Server) -> Operation:
    """Return a script that does nothing: what a round trip by redis-py costs."""
    digest = server.client.script_load("return 1")
    return Operation(lambda: server.client.evalsha(digest, 1, "scale"))


def _operations() -> dict[str, Operation]:
    queue, ready, numbers, throttle = Queue("scale"), Queue("scale ready"), count(), Throttle("scale", "10000/m")
    page, lock, hand = PageViews("scale"), Lock("scale", timeout=300), list[Any]()
    lasting = Throttle("scale lasting", "5/h")  # an identity is stored until its calls no longer count
    store, users = SignInStore(), [SignInUser(User, pk) for pk in range(STORED)]
    ready.put_many({"n": number} for number in range(200_000))

    def exchange() -> None:
        hand[:] = ready.claim(BATCH, done=hand)

    def acquire_and_release() -> None:
        lock.acquire()
        lock.release()

    def views() -> None:
        now, texts = periods.now(), [f"visitor {next(numbers)}" for _ in range(VIEWS)]
        events = [Event(now, "scale", str(at % 100), identified(text)) for at, text in enumerate(texts)]
        page.run_flow(ViewBatch(events, using="default", writer="scale", number=next(numbers)).send())

    def sign_in() -> None:
        number = next(numbers)
        user = users[number % STORED]
        store.run_flow(user.sign_in(Moment(DAY + timedelta(number // STORED), "0 UTC", 0)))

    return {
        "put of a job": Operation(
            lambda: queue.put({"n": next(numbers)}),
            store=lambda most: queue.put_many({"n": number} for number in range(most)),
        ),
        f"claim and ack, {BATCH} at once": Operation(exchange, BATCH),
        "lock: acquire and release": Operation(
            acquire_and_release,
            store=lambda most: [Lock(f"{most} {number}", timeout=300).acquire() for number in range(most)],
        ),
        "decision of a throttle (gcra)": Operation(
            lambda: throttle.hit(next(numbers) % STORED),
            store=lambda most: [lasting.hit(f"{most} {number}") for number in range(most)],
        ),
        f"view, {VIEWS} in a batch": Operation(views, VIEWS),
        "sign-in": Operation(
            sign_in,
            store=lambda most: [store.run_flow(user.sign_in(Moment(DAY, "0 UTC", 0))) for user in users[-most:]],
        ),
    }
