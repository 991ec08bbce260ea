"""Schedules in Redis as workers would store them, and ticks in this process."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues.features.schedules import definition
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.scheduler import Scheduler
from redis_kit.queues.features.schedules.store import Schedules


def declared(task: str, name: str, **given: Any) -> None:
    """Declare a schedule as the code of a worker does."""
    made = definition.made(name=name, task=task, **given)
    schedules = Schedules("all")
    schedules.run_flow(store.declare("v1", {name: made.stored()}))


def scheduler(
    *,
    call: Callable[[Callable[[], Any]], Any] = lambda send: send(),
    fork: Callable[[Callable[[], None]], None] = lambda work: None,
) -> Scheduler:
    """Return a scheduler that declares nothing and reads no database, without a supervisor around it."""

    def run_flow(steps: Any) -> Any:
        return call(partial(Schedules("all").run_flow, steps))

    options, queues = SimpleNamespace(queues=["default"]), [SimpleNamespace(run_flow=run_flow)]
    made = Scheduler(SimpleNamespace(id="s1", options=options, queues=queues, start_helper=fork))
    made._declared, made._version = {}, ""
    return made


def tick(chosen: Scheduler) -> None:
    """Have a scheduler look now."""
    with suppress(RedisUnavailable):  # the supervisor runs it again
        chosen.run()


def states() -> dict[str, store.State]:
    """Return what became of the ticks of each schedule."""
    schedules = Schedules("all")
    page = schedules.run_flow(store.page("names", 0, 100))
    return {each.name: each.state for each in page.schedules}


def overdue(kit: Any, name: str, seconds: float) -> None:
    """Let no worker have run the next tick of a schedule, which has been due for some time."""
    schedules = Schedules("all")
    before, (now, _) = store.read_state(kit.client.hget(schedules.key("state"), name)), kit.client.time()
    kit.client.hset(schedules.key("state"), name, before._replace(next=int((now - seconds) * 1000)).dumps())
    kit.client.delete(schedules.key("watchers"))


def due_now(kit: Any, name: str) -> None:
    """Let the next tick of a schedule be due, as if its time had come: what is settled is set back."""
    key = Schedules("all").key("state")
    before = store.read_state(kit.client.hget(key, name))
    assert before.last is not None
    kit.client.hset(key, name, before._replace(last=before.last - 7_200_000).dumps())
    kit.client.zadd(Schedules("all").key("due"), {name: 1})
