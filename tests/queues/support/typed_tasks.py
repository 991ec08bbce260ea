"""Types of calls and their results, as a project sees them. ``make types`` checks this module; nothing runs it."""

from datetime import timedelta
from typing import Any, assert_type

from redis_kit.queues import (
    Task,
    Workflow,
    chain,
    current_workflow,
    failures,
    group,
    once,
    previous,
    resumable,
    task,
)
from redis_kit.queues.tasks.result import RedisTaskResult
from tests.app.models import User


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task(queue_name="mail", store_result=False)
async def fetch(url: str) -> bytes:
    return url.encode()


@task
def nothing() -> None: ...


@task(takes_context=True, queue_name="imports")
def load(context: Any, path: str) -> int:
    return len(path)


@task(takes_context=True)
async def aload(context: Any, path: str) -> int:
    return len(path)


@task
def publish(album: int, names: list[int], failed: list[dict[str, str]] | None = None) -> None: ...


@task
@once(lambda order: f"charge:{order}")
def charge(order: int) -> str:
    return str(order)


@task(unique=True)
@resumable(User.objects.all())
def remind(user: User, text: str) -> None: ...


@task
@resumable(lambda text: User.objects.filter(first_name=text))
async def aremind(user: User, text: str) -> None: ...


def check_enqueue() -> None:
    result = add.enqueue(1, b=2)
    assert_type(result, RedisTaskResult[int])
    assert_type(result.return_value, int)
    assert_type(result.created, bool | None)
    assert_type(fetch.enqueue("/"), RedisTaskResult[bytes])
    assert_type(add.using(run_after=timedelta(hours=1), priority=5).enqueue(1).return_value, int)
    assert_type(fetch.using(priority=5).enqueue("/").return_value, bytes)
    assert_type(nothing.enqueue(), RedisTaskResult[None])
    add.enqueue("1")  # type: ignore[arg-type]
    add.enqueue(1, c=2)  # type: ignore[call-arg]
    fetch.enqueue()  # type: ignore[call-arg]
    fetch.enqueue(1)  # type: ignore[arg-type]


def check_decorated() -> None:
    assert_type(load.enqueue("a.csv"), RedisTaskResult[int])
    assert_type(aload.enqueue(path="a.csv").return_value, int)
    load.enqueue(1)  # type: ignore[arg-type]
    assert_type(charge.enqueue(1), RedisTaskResult[str])
    assert_type(charge(order=1), str)
    assert_type(remind.enqueue("hi"), RedisTaskResult[None])
    assert_type(aremind.enqueue(text="hi"), RedisTaskResult[None])
    remind.enqueue(1)  # type: ignore[arg-type]


def check_workflows() -> None:
    first, second = add.step(1), fetch.step("/")
    assert_type(chain(first, publish.step(7, previous)).enqueue(), Workflow)
    several = group(add.step(number) for number in range(3))
    group(several, second.after(first), publish.step(7, names=[first.result])).on_done(
        publish.step(7, previous, failures)
    )
    if workflow := current_workflow():
        workflow.add(add.step(1), several)
    add.step("1")  # type: ignore[arg-type]


async def check_aenqueue() -> None:
    assert_type(await add.aenqueue(1), RedisTaskResult[int])
    assert_type((await fetch.aenqueue("/")).return_value, bytes)
    await fetch.aenqueue(url=1)  # type: ignore[arg-type]


async def check_calls() -> None:
    assert_type(add(1), int)
    assert_type(await fetch("/"), bytes)
    assert_type(await fetch.using(priority=5)("/"), bytes)
    several: list[Task[..., Any]] = [add, fetch, nothing]
    several[0].enqueue(1)
