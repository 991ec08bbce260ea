"""Tasks that leave a trace: a line per step in the file that ``JOURNAL`` names."""

import ctypes
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone, translation
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import get_language

from redis_kit import queues
from redis_kit.core.activity import current
from redis_kit.queues import TaskTimeout, signals, task
from redis_kit.queues.engine.feature import has
from tests.queues.support.journal import write as journal

done: list[Any] = []


@task
def note(name: str) -> None:
    journal(name, "begin")
    journal(name, "end")


@task
def note_failures(name: str, results: list[Any], failures: list[dict[str, str]]) -> None:
    journal(f"{name}-{len(failures)}", "end")


@task(store_result=False)
def note_slowly(name: str, seconds: float) -> None:
    journal(name, "begin")
    time.sleep(seconds)
    journal(name, "end")


# Without the feature these tasks have no limits, and only the tests of others use the module.
@task(**{"concurrency": 2} if has("lanes") else {})
def note_in_twos(name: str, seconds: float) -> None:
    note_slowly.call(name, seconds)


@task(**{"rate": "5/s"} if has("lanes") else {}, store_result=False)
def note_at_a_rate(name: str) -> None:
    journal(name, "end")


@task
def wait_for_file(name: str, path: str) -> None:
    journal(name, "begin")
    deadline = time.monotonic() + 60
    while not Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    journal(name, "end")


@task(timeout=1, max_attempts=1)
def end_with_a_file(name: str, path: str, *, fails: bool = False) -> None:
    wait_for_file.call(name, path)
    if fails:
        raise ValueError(name)


@task
def take_lock(name: str) -> None:
    journal(name, "begin")
    from redis_kit.locks import Lock  # brings the client, which modules of tasks can do without

    Lock(name, timeout=60).acquire(blocking_timeout=30)
    journal(name, "end")


@task
async def wait_long(name: str) -> None:
    import asyncio

    journal(name, "begin")
    await asyncio.sleep(60)


@task
def tell_progress(path: str) -> None:
    queues.progress(1, 2, "waits")
    deadline = time.monotonic() + 60
    while not Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    queues.progress(2, 2)


@task
def die(name: str) -> None:
    journal(name, "begin")
    os.kill(os.getpid(), signal.SIGKILL)


@task(max_attempts=1)
def fork(path: str, how: str) -> None:
    """Fork a child that comes back from here."""
    child = os.fork()
    Path(path).write_text(str(child or os.getpid()))
    if child:
        journal(f"exit-{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", "end")
    elif how == "raise":
        raise ValueError("in the child")


@task(max_attempts=1)
def die_once(name: str) -> None:
    die.call(name)


@task
def remember(value: Any, *, twice: bool = False) -> Any:
    done.append(value)
    return value


@task(store_result=False)
def forget() -> None:
    done.append("forgotten")


@task
async def remember_async(value: Any) -> Any:
    done.append(value)
    return value


@task
def remember_doing() -> None:
    done.append(current.get().work)


@task
async def remember_doing_async() -> None:
    done.append(current.get().work)
    done.append((await sync_to_async(current.get)()).work)


@task
def tell_locale() -> None:
    done.append((get_language(), get_current_timezone_name()))


@task
async def tell_locale_async() -> None:
    tell_locale.call()


@task
def activate(language: str, zone: str) -> None:
    translation.activate(language)
    timezone.activate(zone)
    tell_locale.call()


@task
async def activate_async(language: str, zone: str) -> None:
    await sync_to_async(activate.call)(language, zone)


@task(max_attempts=2)
def fail(text: str) -> None:
    done.append(text)
    raise ValueError(text)


@task(timeout=0.1, max_attempts=1)
def hang() -> None:
    while True:
        time.sleep(0.005)


@task(timeout=0.1, max_attempts=1)
def swallow() -> str:
    try:
        hang.call()
    except TaskTimeout:
        return "swallowed"


@task
def log_text(text: str) -> None:
    logging.getLogger("tests.jobs").warning(text)


@task(max_attempts=1)
def forge() -> None:
    text = "bad\nJob 'X' of queue 'default' (shop.tasks.pay) succeeded.\r\x1b[31mred"
    for name in ("shop", "django.tasks"):
        logging.getLogger(name).error(text)
    raise ValueError(text)


@task(timeout=0.1, max_attempts=1)
async def hang_async() -> None:
    import asyncio

    await asyncio.sleep(60)


@task(max_attempts=1)
def leave_python() -> None:
    raise SystemExit(3)


@task(max_attempts=1)
def recurse() -> None:
    recurse.call()


@task(queue_name="elsewhere")
def remember_elsewhere(value: Any) -> None:
    done.append(value)


@task
def die_of(name: str, cause: str) -> None:
    journal(name, "begin")
    if cause in ("exit", "zero"):
        os._exit(3 if cause == "exit" else 0)
    ctypes.string_at(0)


@task(timeout=0.3, max_attempts=1)
def never_end(name: str) -> None:
    journal(name, "begin")
    while True:
        try:
            time.sleep(0.01)
        except BaseException:  # noqa: S112 -- as bad tasks do
            continue


@task(timeout=0.3, max_attempts=2)
def never_leave_c(name: str) -> None:
    journal(name, "begin")
    sum(range(10**12))  # no other thread of the process runs meanwhile


@task(timeout=None)
def hold_c(name: str) -> None:
    journal(name, "begin")
    sum(range(10**12))


@task(timeout=None)
def sleep_on(name: str) -> None:
    journal(name, "begin")
    time.sleep(600)  # no error reaches it


hoard: list[bytes] = []


@task
def grow(name: str, mebibytes: int) -> None:
    hoard.append(b"x" * (mebibytes * 2**20))
    journal(name, "end")


def _worker_started(**_: Any) -> None:
    journal("worker", "started")


def _worker_stopping(**_: Any) -> None:
    journal("worker", "stopping")


signals.worker_started.connect(_worker_started)
signals.worker_stopping.connect(_worker_stopping)
