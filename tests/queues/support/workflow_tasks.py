"""Tasks for workflows: each notes that it ran."""

from typing import Any

from redis_kit.queues import current_workflow, task

ran: list[Any] = []
broken: set[Any] = set()  # for which work() fails


@task(max_attempts=1)
def work(value: Any) -> Any:
    ran.append(value)
    if value in broken:
        raise ValueError(value)
    return value


@task(queue_name="elsewhere", store_result=False)
def add(*numbers: int, to: int = 0) -> int:
    ran.append(sum(numbers) + to)
    return sum(numbers) + to


@task(store_result=False)
async def total(numbers: list[int | None]) -> int:
    ran.append(numbers)
    return sum(number or 0 for number in numbers)


@task(max_attempts=1)
def report(results: list[Any], failed: list[dict[str, str]]) -> None:
    ran.append((results, [(item["task"].rpartition(".")[2], item["error"]) for item in failed]))


@task(max_attempts=1)
def split(count: int, *, fails: bool = False) -> int:
    ran.append(f"split {count}")
    workflow = current_workflow()
    assert workflow
    workflow.add(*(work.step(number) for number in range(count)))
    if "split" in broken:
        raise ValueError
    return count


@task(max_attempts=1, store_result=False)
def unstorable() -> object:
    return object()


@task
def with_context(value: int) -> int:
    return value
