"""Run one server until standard input closes; then kill it and remove its folder.

``embedded`` starts this file as a script, ``python -I -S guard.py FOLDER COMMAND...``, and keeps the other end of
standard input. The kernel closes that end when the owner ends, however it ends, so the server cannot outlive it.
"""

import contextlib
import os
import select
import signal
import sys

# Python ignores these two, and an ignored signal would stay ignored in the server.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(folder: str, *command: str) -> None:
    """Print the server's process id, then watch it and the owner."""
    bell = _signal_pipe(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
    try:
        server = _start(*command)
        with contextlib.suppress(BrokenPipeError):  # the owner was interrupted; the server is killed when it has ended
            os.write(1, b"%d\n" % server)
        os.close(1)
        _wait(server, bell)
    finally:
        # Imported late: it costs as much as the rest of the start.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _signal_pipe(*signals: signal.Signals) -> int:
    """Turn the signals into bytes on a pipe, so that none interrupts a start or a clean-up half-way."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def _start(*command: str) -> int:
    # A group of its own, so that the forked children of a server (a rewrite of its log) go with it.
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
        setpgroup=0,
        setsigdef=_IGNORED_BY_PYTHON,
    )


def _wait(server: int, bell: int) -> None:
    """Return when the server has ended; end it when the owner has, or on SIGTERM."""
    while not _ended(server):
        ready, _, _ = select.select([0, bell], [], [])
        if 0 in ready or signal.SIGTERM in os.read(bell, 64):
            # SIGKILL loses nothing: the log of a persistent server is written before each answer.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server, signal.SIGKILL)
            os.waitpid(server, 0)
            return


def _ended(server: int) -> bool:
    return os.waitpid(server, os.WNOHANG)[0] == server


if __name__ == "__main__":
    main(*sys.argv[1:])
