"""Tasks of ``django.tasks``, as a project has them that knows nothing of the kit."""

import time
from typing import Any

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

seen: list[Any] = []


@task
def echo(value: Any, *, twice: bool = False) -> Any:
    seen.append(value)
    return [value, value] if twice else value


@task
async def echo_async(value: Any) -> Any:
    return value


@task
def fail(text: str) -> None:
    raise ValueError(text)


@task
def leave_python() -> None:
    raise SystemExit(3)


@task
def return_function() -> Any:
    return fail


@task
def return_much() -> Any:
    return "x" * 300_000


@task
def return_pair() -> Any:
    return (1, b"two")


@task(takes_context=True)
def tell(context: Any, word: str) -> Any:
    result = context.task_result
    return [word, result.id, context.attempt, str(result.status), len(result.worker_ids)]


@task(takes_context=True)
def fail_at_first(context: Any) -> Any:
    if context.attempt == 1:
        raise ValueError("not yet")
    return [error.exception_class_path for error in context.task_result.errors]


@task
def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@task
def interrupt() -> None:
    raise KeyboardInterrupt
