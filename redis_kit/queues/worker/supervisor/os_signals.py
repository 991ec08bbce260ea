"""Signals of a supervisor, from the start of its command to its end, and those of its children. None is lost.

While the process loads, the system acts on them, see loading(). In Signals' ``with`` a handler notes their numbers, and
the loop reads them. One step leads to the other while they are held back, so each meets the one or the other. So does
a fork: before signals reach the child, they have become its own.
"""

import contextlib
import faulthandler
import os
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

TICK = 0.5  # seconds between two looks at the clock, also while a call to the server waits
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOW, QUIET, RESUME, STACKS = signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT, signal.SIGTTIN
COMMANDS = (*STOP, NOW, QUIET, RESUME, STACKS)
ALL = (*COMMANDS, signal.SIGCHLD, signal.SIGALRM)

Answer = TypeVar("Answer")


class Interrupted(BaseException):
    """A signal ended a call to the server, to be acted on first. The call may be made again."""


class Signals:
    """Takes the signals of this process while in a ``with``; ``tick`` is called between any two steps of it.

    ``stopped`` tells whether one to stop came that was not yet taken.
    """

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._noted: deque[int] = deque()  # a handler may add to it at any time
        self._before: dict[int, Any] = {}
        self._calling = False
        self.stopped = False

    def __enter__(self) -> "Signals":
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
        try:
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)
            self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            for number in ALL:
                # nohup ignores HUP, and who uses it wants that.
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handler(number))
            self.tick_every(TICK)
        finally:
            # Also those that were blocked by what started this process: it could not be stopped.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ALL)
        return self

    def __exit__(self, *_: object) -> None:
        self.tick_every(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._close()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def tick_every(self, seconds: float) -> None:
        """Call ``tick`` so often; 0: never."""
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def fileno(self) -> int:
        """Return the number to wait for."""
        return self._reader

    def taken(self) -> Iterator[int]:
        """Yield the signals that came and were not yet taken. Each is taken when it is yielded, and not before."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 1 << 16)
        self.stopped = False
        while self._noted:
            yield self._noted.popleft()

    def call(self, call: Callable[[], Answer]) -> Answer:
        """Make a call to the server. A signal to stop raises Interrupted out of it, as one does that waits."""
        self._calling = True
        try:
            if self.stopped:
                raise Interrupted
            return call()
        finally:
            self._calling = False

    def interrupt(self) -> None:
        """Raise Interrupted out of a call that is under way; to be called by ``tick``."""
        if self._calling:
            self._calling = False  # once
            raise Interrupted

    def forget(self) -> None:
        """Let a child have signals of its own: those for all processes of a terminal or a service do not concern it.

        Commands reach it by its channel. A handler that does nothing is, unlike SIG_IGN, not inherited by programs.
        To be called while they are held back.
        """
        signal.set_wakeup_fd(-1)
        for number in ALL:
            by_default = number in (signal.SIGCHLD, signal.SIGALRM)
            signal.signal(number, signal.SIG_DFL if by_default else _ignored)
        self._noted.clear()
        self._close()
        _dump_at_once()

    def _handler(self, number: int) -> Callable[..., None]:
        if number == signal.SIGALRM:
            return self._ticked
        return _ignored if number == signal.SIGCHLD else self._note

    def _note(self, number: int, _: object) -> None:
        self._noted.append(number)
        if number in (*STOP, NOW):
            self.stopped = True
            self.interrupt()

    def _ticked(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # it would come out of whatever is being done now
            self._tick()

    def _close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


def readable(watched: Iterable[Any], seconds: float) -> list[Any]:
    """Wait for input, up to ``seconds``, and return what can be read. Unlike select(), takes any descriptor."""
    by_number = {source.fileno(): source for source in watched}
    poll = select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(max(0.0, seconds) * 1000)]


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """While a command loads, a signal to stop ends it at once: it holds nothing yet.

    KeyboardInterrupt would not do: it is lost where Python can't raise it, as in the callbacks of an import. TTIN
    writes the stacks, and TSTP waits for Signals, since a process that it stops would not end at TERM.
    """
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {QUIET})
    _dump_at_once()
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            faulthandler.unregister(STACKS)
        if raises:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        before = signal.signal(QUIET, signal.SIG_IGN)  # one that waits would stop the process now
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(QUIET, before)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold signals back in the block: a child must not answer with its parent's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def dump_stacks() -> None:
    """Write the stacks of the supervisor's threads to stderr."""
    announce_stacks(f"supervisor {os.getpid()}")
    with contextlib.suppress(Exception):
        faulthandler.dump_traceback(sys.stderr, all_threads=True)


def announce_stacks(process: str) -> None:
    """Write to stderr whose stacks follow."""
    with contextlib.suppress(Exception):
        print(f"Stacks of {process}:", file=sys.stderr, flush=True)


def _dump_at_once() -> None:
    with contextlib.suppress(Exception):  # stderr may not be a file
        faulthandler.unregister(STACKS)  # else it would not notice that another handler has taken its place
        faulthandler.register(STACKS, all_threads=True, chain=False)


def _ignored(*_: object) -> None:
    pass
