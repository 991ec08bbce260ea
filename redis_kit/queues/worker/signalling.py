"""Signals of a supervisor, as numbers that a pipe delivers; and what its children make of theirs."""

import contextlib
import faulthandler
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

TICK = 0.5  # seconds between two looks at the clock, also while a call to the server waits
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOW, QUIET, WORK, STACKS = signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT, signal.SIGTTIN
ALL = (*STOP, NOW, QUIET, WORK, STACKS, signal.SIGCHLD, signal.SIGALRM)


class Signals:
    """Takes the signals of this process while in a ``with``; ``tick`` is called between any two steps of it."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        for number in ALL:
            # nohup ignores HUP, and who uses it wants that.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                tick = number == signal.SIGALRM
                self._before[number] = signal.signal(number, self._ticked if tick else _only_noted)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Return the number to select by."""
        return self._reader.fileno()

    def taken(self) -> list[int]:
        """Return the signals that came since the last call."""
        try:
            return list(self._reader.recv(4096))
        except BlockingIOError:
            return []

    def forget(self) -> None:
        """Let a child have signals of its own: those for all processes of a terminal or a service are no news to it.

        Orders reach it by its line. A handler that does nothing is, unlike SIG_IGN, not passed on to programs it runs.
        """
        signal.set_wakeup_fd(-1)
        for number in ALL:
            by_default = number in (signal.SIGCHLD, signal.SIGALRM)
            signal.signal(number, signal.SIG_DFL if by_default else _only_noted)
        self._reader.close()
        self._writer.close()
        with contextlib.suppress(Exception):  # a stderr that is no file
            faulthandler.register(STACKS, all_threads=True, chain=False)

    def _ticked(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # it would come out of whatever is being done now
            self._tick()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold signals back meanwhile: a child must not answer with its parent's handlers."""
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


def _only_noted(*_: object) -> None:
    pass
