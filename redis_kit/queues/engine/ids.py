"""Ids of jobs and workers. They are random, so that two processes never share one, whatever their host and pid."""

import json
import os
import socket
from base64 import urlsafe_b64encode
from functools import lru_cache
from urllib.parse import quote, unquote

from redis_kit.queues.settings import whole

LENGTH = 14  # characters of a new job's id
LONGEST_SUFFIX = 100  # characters; an id has at most 128 with the number of a step or the bucket of a shard


def new_job() -> str:
    """Return the id of a new job: 14 random characters, 84 bits. One character more would cost Redis 32 bytes a job."""
    return _random(11)[:LENGTH]


def new_call(queue: str) -> str:
    """Return the id of a task's new job and of its result. The name of the queue can be read from it."""
    return of_queue(new_job(), queue)


def new_calls(queue: str, count: int) -> list[str]:
    """Return as many ids as new_call() returns, with a tenth of the work."""
    size, suffix = 16, _suffix(queue)  # 12 random bytes are 16 characters
    text = urlsafe_b64encode(os.urandom(12 * count)).decode()
    parts = [text[at : at + LENGTH] for at in range(0, size * count, size)]
    return [(f"A{part[1:]}" if part[0] == "-" else part) + suffix for part in parts]


def of_queue(id: str, queue: str) -> str:
    """Return the id of a task's job, given its first part."""
    return id + _suffix(queue)


def of_step(workflow: str, number: int, queue: str) -> str:
    """Return the id of the job of a workflow's step, always the same."""
    return f"{workflow}-{number}{_suffix(queue)}"


def in_full(id: str, queue: str) -> tuple[str, ...]:
    """Return an id as it is given, and also with the queue if it may be the first part of a call's id."""
    return (id, id + suffix) if len(id) == LENGTH and (suffix := _suffix(queue)) else (id,)


def queue_of(id: str) -> str:
    """Return the queue of a task's job."""
    _, dot, name = id.partition(".")
    return unquote(name.replace(".", "%")) if dot else "default"


def part_of(queue: str, id: str) -> str:
    """Return the part of a queue that an id names, "" if it names none: the caller of put() may have chosen it."""
    named = queue_of(id) if "." in id else ""
    return named if whole(named) == queue else ""


def _suffix(queue: str) -> str:
    return "" if queue == "default" else f".{_marked(quote(queue, safe=''))}"


def _marked(quoted: str) -> str:
    # Ids are letters, digits and _ . - only; quote() leaves ~ and the dot alone.
    return quoted.replace(".", "%2E").replace("~", "%7E").replace("%", ".")


def new_worker() -> str:
    """Return the id of a new worker: 22 random characters, 128 bits."""
    return _random(16)


def this_process() -> str:
    """Return the id under which this process claims jobs by default; a forked child has an id of its own."""
    return _of(os.getpid())


def information(**more: object) -> str:
    """Return the information that a worker stores about itself, as JSON."""
    return _information(os.getpid()) if not more else json.dumps({**_own(), **more})


def _random(size: int) -> str:
    id = urlsafe_b64encode(os.urandom(size)).rstrip(b"=").decode()  # token_urlsafe() takes twice as long
    return f"A{id[1:]}" if id[0] == "-" else id  # a shell's commands take what begins with - for an option


@lru_cache(maxsize=1)
def _of(pid: int) -> str:
    return new_worker()


@lru_cache(maxsize=1)
def _information(pid: int) -> str:
    return json.dumps(_own())


def _own() -> dict[str, object]:
    return {"host": socket.gethostname(), "pid": os.getpid()}
