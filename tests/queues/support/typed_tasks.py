"""Types of calls and their results, as a project sees them. ``make types`` checks this module; nothing runs it."""

from datetime import timedelta
from typing import Any, assert_type

from redis_kit.queues import Task, task
from redis_kit.queues.tasks.result import RedisTaskResult


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task(queue_name="mail", store_result=False)
async def fetch(url: str) -> bytes:
    return url.encode()


@task
def nothing() -> None: ...


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
