"""``@single_instance``: a management command that runs once at a time, across all machines."""

import asyncio
import functools
import inspect
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal, TypeVar, overload

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from redis_kit.core import activity
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.text import clean, shortened
from redis_kit.locks.arguments import Seconds
from redis_kit.locks.decorators.locked import NameTemplate
from redis_kit.locks.errors import LockNotAcquired, NotHeld
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.leases.lease import Lease

logger = logging.getLogger("redis_kit.locks")

UNAVAILABLE, BUSY = 69, 75  # EX_UNAVAILABLE and EX_TEMPFAIL of sysexits.h
ANSWERS = ("fail", "skip")
OnBusy = Literal["fail", "skip"]
Command = TypeVar("Command", bound=type[BaseCommand])


@overload
def single_instance(command: Command, /) -> Command: ...
@overload
def single_instance(
    *,
    name: str | None = None,
    on_busy: OnBusy = "fail",
    wait: Seconds = 0,
    timeout: Seconds | None = None,
    using: str = "default",
) -> Callable[[Command], Command]: ...
def single_instance(
    command: Any = None,
    /,
    *,
    name: str | None = None,
    on_busy: OnBusy = "fail",
    wait: Seconds = 0,
    timeout: Seconds | None = None,
    using: str = "default",
) -> Any:
    """Run a management command only while no other process, on any machine, runs it.

    The lock around handle() is called ``name``, by default ``command:<app label>.<command>``; ``{database}`` in it
    stands for that option. It is renewed as long as the command runs, so a dead command blocks others for at most
    ``timeout`` (0.1 s to 24 h). If another one still runs after ``wait`` seconds (0 to 31,536,000), the command fails
    with exit code 75 and names the holder; with "skip" it prints the same and exits with 0. If Redis is unavailable it
    fails with 69. A command that loses its lock is stopped as by SIGTERM and fails with 1. ``self.lease`` is the Lease.
    Two round trips.
    """
    if on_busy not in ANSWERS:
        raise InvalidValue(f"on_busy must be 'fail' or 'skip', not {shortened(on_busy)}.")
    create = functools.partial(Lock, timeout=timeout, blocking_timeout=wait, renew=True, using=using)
    create("checks the arguments")

    def decorate(command: Any) -> Any:
        _check(command)
        function = command.handle
        template = None if name is None else NameTemplate(name, function)

        @functools.wraps(function)
        def handle(self: BaseCommand, *args: Any, **options: Any) -> Any:
            execution = _Execution(self, function)
            lock_name = template((self, *args), options) if template else f"command:{execution.label}"
            with execution.interruptible():
                lease = execution.acquire(create(lock_name, on_lost=execution.stop), on_busy)
                return execution.run(lease, *args, **options) if lease else None

        command.handle = handle
        return command

    return decorate if command is None else decorate(command)


class _Execution:
    """One run of a command. During it, SIGTERM ends the command as Ctrl-C does, so that the lock is released."""

    def __init__(self, command: BaseCommand, function: Callable[..., Any]) -> None:
        self.command, self.function, self.label = command, function, _label(command)
        self._stoppable, self._stopping = False, threading.Lock()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let SIGTERM end the command in this block."""
        # If the process has its own handler of SIGTERM, as web servers do, this command must not replace it.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGTERM) if is_main else None
        self._stoppable = before in (signal.SIG_DFL, _leave)
        if self._stoppable:
            signal.signal(signal.SIGTERM, _leave)
        try:
            with activity.doing(f"command {self.label}"):
                yield
        finally:
            with self._stopping:
                stoppable, self._stoppable = self._stoppable, False
            if stoppable and signal.getsignal(signal.SIGTERM) is _leave:
                signal.signal(signal.SIGTERM, before)

    def acquire(self, lock: Lock, on_busy: OnBusy) -> Lease | None:
        """Acquire the lock; None, and a message, if the command is skipped. Raises CommandError."""
        try:
            return lock.acquire_or_raise()
        except LockNotAcquired as busy:
            message = f"{self.label} was not started: {clean(str(busy))}"
            if on_busy == "fail":
                raise CommandError(message, returncode=BUSY) from None
            self.command.stdout.write(message)
            return None
        except RedisFailure as error:
            text = f"{self.label} was not started, since it is unknown whether it runs already: {clean(str(error))}"
            raise CommandError(text, returncode=UNAVAILABLE) from error

    def run(self, lease: Lease, *args: Any, **options: Any) -> Any:
        """Run the command and release the lock. Raises CommandError if it was lost."""
        output = None
        try:
            self.command.lease = lease  # type: ignore[attr-defined]
            output = self.function(self.command, *args, **options)
            output = asyncio.run(output) if inspect.iscoroutine(output) else output
        except SystemExit:
            if not lease.lost:
                raise
        finally:
            try:
                lease.release()
            except NotHeld:
                pass  # lost: reported below
            except RedisFailure as error:
                logger.warning("%r could not be released; retrying until the process ends: %s", lease, error)
        if lease.lost:
            raise CommandError(f"{self.label} lost its lock while it ran; another one may have run at the same time.")
        return output

    def stop(self, lease: Lease) -> None:
        """End the command, whose lock was lost."""
        logger.error("%s lost its lock while it runs; another one may run now.", self.label)
        with self._stopping:
            if self._stoppable:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _label(command: BaseCommand) -> str:
    module = type(command).__module__
    app = apps.get_containing_app_config(module)
    return f"{app.label if app else module.partition('.')[0]}.{module.rpartition('.')[2]}"


def _check(command: Any) -> None:
    if not (isinstance(command, type) and issubclass(command, BaseCommand)):
        raise TypeError(f"@single_instance takes a management command class, not {command!r}.")
    if command.handle is BaseCommand.handle:
        raise TypeError(f"@single_instance takes a command with a handle(), and {command!r} has none.")
