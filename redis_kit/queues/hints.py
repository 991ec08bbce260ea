"""The words of other task queues, and those of this one for the same thing: hints in errors."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from redis_kit.core.text import unexpected

POSITIONAL = "*"  # in place of a name: the hint for arguments without a name, where all have one
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LATER = "using(run_after=timedelta(seconds=60)).enqueue(...) adds a job for later"
NOW = f"enqueue(...) adds a job, and {LATER}"
ON_COMMIT = "enqueue(...) waits for the commit by itself; @task(enqueue_on_commit=False) turns that off"
STEP = "step(...) is a call for chain() and group()"
AFTER = "write using(run_after=...): a timedelta, or a datetime"
ATTEMPTS = "write @task(max_attempts=...), which counts the first attempt, too"
WAITS = "write @task(backoff=...): the seconds between attempts, or a sequence of these"
TIMEOUT = "write @task(timeout=...), in seconds"
EXPIRES = "write expires=...: seconds or a timedelta"
STORED = "write @task(store_result=...); the options RESULT_TTL and FAILED_RESULT_TTL set the time"
ENDED = "wait_until_finished(timeout) waits, and refresh() reads the result again; then see status and return_value"
CALLBACK = "group(...).on_done(callback) runs the callback when the group has ended, also if a step failed"
OF_STEP = "steps() tells the id of each step, and task.get_result(id) reads its result"

TASK: Mapping[str, str] = {
    **dict.fromkeys(("delay", "apply_async", "send", "send_with_options", "apply", "schedule", "queue", "defer"), NOW),
    **dict.fromkeys(("enqueue_in", "enqueue_at", "run_later"), LATER),
    **dict.fromkeys(("delay_on_commit", "apply_async_on_commit"), ON_COMMIT),
    **dict.fromkeys(("s", "si", "subtask", "signature", "map", "starmap", "chunks", "then"), STEP),
    "retry": "raise redis_kit.queues.Retry(delay=...) in the function; any other error is retried, too",
    "options": "using(...) returns a copy of the task with other options",
    "AsyncResult": "task.get_result(id) reads a result",
}
PART: Mapping[str, str] = {
    **dict.fromkeys(("delay", "apply_async", "send", "run", "start", "apply"), "enqueue() starts a workflow of it"),
    **dict.fromkeys(("set", "options", "using"), "write task.using(...).step(...)"),
    **dict.fromkeys(("link", "then", "chain", "pipe"), "chain(a.step(), b.step()) runs one after the other"),
    **dict.fromkeys(("depends_on", "depends"), "write after(...)"),
    **dict.fromkeys(("link_error", "on_error", "on_failure"), CALLBACK),
    **dict.fromkeys(("on_done", "completed", "add_completion_callback", "on", "callback"), CALLBACK),
    "get": "result stands for its result in the arguments of another step",
}
WORKFLOW: Mapping[str, str] = {
    **dict.fromkeys(
        ("get", "wait", "join", "ready"), "wait_until_finished(timeout) waits, and status() tells its state"
    ),
    **dict.fromkeys(("state", "successful", "failed", "completed_count", "done"), "see status()"),
    **dict.fromkeys(("revoke", "abort", "stop"), "cancel() cancels it"),
    **dict.fromkeys(("children", "jobs", "nodes"), "see steps()"),
    **dict.fromkeys(("result", "results", "return_value", "errors"), OF_STEP),
    "add": "current_workflow().add(...) adds steps in a running step",
}
RESULT: Mapping[str, str] = {
    **dict.fromkeys(("get", "wait", "join", "ready", "state", "result", "successful", "failed"), ENDED),
    **dict.fromkeys(("revoke", "abort"), "cancel() cancels the call"),
    **dict.fromkeys(("traceback", "exc_info", "exception"), "errors has the error of each attempt, with its traceback"),
    **dict.fromkeys(("info", "meta"), "progress has what the task reported last"),
    "forget": "results expire by themselves, after the options RESULT_TTL and FAILED_RESULT_TTL",
    "key": "id names the result",
}
NO_RESULT: Mapping[str, str] = dict.fromkeys(RESULT, "its task has store_result=False, so there is no result")
QUEUE: Mapping[str, str] = {
    **dict.fromkeys(
        ("enqueue", "enqueue_in", "enqueue_at", "enqueue_call"),
        "put(payload, delay=...) adds a job; a function is a @task, and its enqueue() adds a job that calls it",
    ),
    **dict.fromkeys(("push", "add", "send", "publish"), "put(payload) adds a job"),
    **dict.fromkeys(("pop", "get_nowait", "dequeue", "receive"), "claim() takes jobs, and ack(job) ends one"),
    **dict.fromkeys(("size", "qsize", "count", "length"), "counts() has the number of jobs in each state"),
    **dict.fromkeys(("clear", "empty"), "purge(state) deletes jobs"),
}
USING: Mapping[str, str] = {
    **dict.fromkeys(("delay", "countdown", "eta", "run_in", "run_at", "schedule", "at", "delta"), AFTER),
    **dict.fromkeys(("queue", "que", "queues", "routing_key"), "write queue_name=..."),
    **dict.fromkeys(("ttl", "expire", "expires_in", "max_age"), EXPIRES),
    **dict.fromkeys(("retries", "max_retries", "retry", "max_attempts"), ATTEMPTS),
    **dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout", "timeout"), TIMEOUT),
    **dict.fromkeys(("result_ttl", "ignore_result", "store_result"), STORED),
    **dict.fromkeys(("retry_delay", "retry_backoff", "backoff"), WAITS),
    **dict.fromkeys(("unique", "unique_by", "replace"), "write it as an option of @task"),
    "args": "pass the arguments to enqueue() as to the function",
    "kwargs": "pass the arguments to enqueue() as to the function",
}
DECORATOR: Mapping[str, str] = {
    **{name: USING[name] for name in ("delay", "countdown", "eta", "run_in", "run_at", "schedule")},
    **{name: USING[name] for name in ("queue", "que", "queues", "routing_key", "ttl", "expire")},
    **{name: USING[name] for name in ("expires_in", "max_age")},
    **{name: USING[name] for name in ("retries", "max_retries", "retry", "time_limit", "soft_time_limit")},
    **{name: USING[name] for name in ("job_timeout", "result_ttl", "ignore_result", "retry_delay", "retry_backoff")},
    **dict.fromkeys(("default_retry_delay", "retry_jitter", "retry_backoff_max", "retry_kwargs", "retry_when"), WAITS),
    **dict.fromkeys(("autoretry_for", "throws"), "each error is retried; raise redis_kit.queues.GiveUp to end that"),
    **dict.fromkeys(("bind", "context"), "write takes_context=True: the first argument is the context"),
    **dict.fromkeys(("name", "actor_name"), "a task is named by its module and function"),
    **dict.fromkeys(("acks_late", "reject_on_worker_lost"), "a job always is acknowledged after its task has ended"),
    **dict.fromkeys(("rate_limit", "throttle"), 'write rate=..., such as "10/m"'),
    "run_after": "write using(run_after=...) for a call",
    "on_commit": "write enqueue_on_commit=...",
    **dict.fromkeys(("every", "cron", "crontab", "periodic"), "write @periodic(every=...) above @task"),
}
LIMIT: Mapping[str, str] = {
    **dict.fromkeys(("key", "keys", "arguments", "by_arguments"), "write by=('tenant_id',)"),
    **dict.fromkeys(("local", "scope", "local_limit", "worker"), "write per_worker=True"),
    **dict.fromkeys(("limit", "global_limit", "max_concurrency"), "write concurrency=..."),
    **dict.fromkeys(("rate_limit", "period"), "write rate=..., such as '10/s'"),
}
CALL: Mapping[str, str] = {
    **{name: hint for name, hint in USING.items() if name not in ("args", "kwargs")},
    **dict.fromkeys(
        ("run_after", "queue_name", "priority", "backend", "expires", "tags"), "options of a call belong in using(...)"
    ),
}
PERIODIC: Mapping[str, str] = {
    POSITIONAL: "write @periodic(every=60) above @task",
    **dict.fromkeys(("schedule", "interval", "seconds", "run_every", "period"), "write every=..., in seconds"),
    **dict.fromkeys(("minutes", "hours", "days"), "write every=timedelta(...)"),
    **dict.fromkeys(("crontab", "cron_string", "cron_expression"), "write cron='0 4 * * *'"),
    **dict.fromkeys(("minute", "hour", "day_of_week", "day_of_month", "month_of_year"), "write cron='0 4 * * *'"),
    **dict.fromkeys(("tz", "tzinfo", "zone"), "write timezone='Europe/Berlin'"),
    **dict.fromkeys(("queue", "queue_name", "priority", "expires", "timeout"), "write it as an option of @task"),
}
WORKER: Mapping[str, str] = {  # the options of other workers
    **dict.fromkeys(("", "-Q", "-q", "--queues"), "--queue-name"),
    **dict.fromkeys(("-c", "-t", "--concurrency"), "--threads"),
    **dict.fromkeys(("-p", "-w", "--workers"), "--processes"),
    **dict.fromkeys(("-b", "--batch"), "--burst"),
    **dict.fromkeys(("--max-tasks-per-child", "--max-jobs"), "--max-tasks"),
    **dict.fromkeys(("--autoreload", "--watch"), "--reload"),
}


def no_attribute(thing: str, name: str, hints: Mapping[str, str], owner: object) -> AttributeError:
    """Return the error for an attribute that does not exist, with a hint if another library has it."""
    if hint := hints.get(name):
        return AttributeError(f"{thing} has no {name}: {hint}.")
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner)


def of_arguments(names: Iterable[str], hints: Mapping[str, str]) -> str:
    """Return the hint for the first of these arguments that has one; "" without one."""
    return next((f"{name} is not an argument here: {hints[name]}" for name in names if name in hints), "")


def sentences(hints: Mapping[str, str]) -> dict[str, str]:
    """Return hints as sentences."""
    return {name: f"{hint[0].upper()}{hint[1:]}." for name, hint in hints.items()}


def with_hints(hints: Mapping[str, str]) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function: the TypeError for an argument that it does not have says which one was probably meant."""
    words = sentences(hints)

    def decorated(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        allowed = frozenset(signature(function).parameters)

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            if args and POSITIONAL in words:
                raise TypeError(f"{function.__name__}() takes arguments with names only. {words[POSITIONAL]}")
            if unknown := kwargs.keys() - allowed:
                raise unexpected(function.__name__, function, unknown, words)
            return function(*args, **kwargs)

        return call

    return decorated
