"""What ``rk_demo`` does, by its options; each returns an exit code."""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from example_project.demo.child import Failed
from example_project.demo.console import say
from example_project.demo.run import USUAL_PORT, is_free, running

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GLANCE = 0.2  # seconds between two looks at the processes
LOADED = time.monotonic()


def main(*, port: int | None, check: bool, replay: Path | None, rate: float) -> int:
    """Run it. 0 when all went well or somebody ended the demonstration, 1 when something failed."""
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        if check:
            return checked(port)
        if replay:
            return replayed(replay, port, rate)
        demonstrate(port)
    except Failed as error:
        say(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if check or replay:
            say("\nEnded before it was through.", file=sys.stderr)
            return 1
        say("\nEnded.")
    return 0


def stop(number: int, frame: FrameType | None) -> None:
    """Leave whatever is going on; nothing interrupts the cleaning up."""
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


def demonstrate(port: int | None) -> None:
    """Run the site with its visitors until somebody ends it. Raises Failed when a part of it ends by itself."""
    from example_project.demo.crowd import Crowd

    with running(port=chosen(port), keep=True) as run:
        crowd = Crowd(run.port)
        crowd.start()
        try:
            say(WELCOME.format(url=run.url, seconds=since_start()))
            while True:
                run.check()
                time.sleep(GLANCE)
        finally:
            crowd.stop()


def checked(port: int | None) -> int:
    """Try every part over HTTP and say how it went."""
    from example_project.demo import checks

    os.environ.setdefault("READING_REPORT_SECONDS", "1.5")
    with running(port=given(port), keep=False) as run:
        return checks.carry_out(run, since_start())


def replayed(path: Path, port: int | None, rate: float) -> int:
    """Play a log to the site and compare what the kit counted with what is in the log."""
    from example_project.demo import comparison

    with running(port=given(port), keep=False) as run:
        return comparison.carry_out(run, path, rate=rate)


def chosen(port: int | None) -> int | None:
    """Return the port to serve on, None for any that is free. Raises Failed when the one asked for is taken."""
    if port is None and not is_free(USUAL_PORT):
        say(f"Port {USUAL_PORT} is taken, so another is used. Choose one with --port.")
        return None
    return given(port) or USUAL_PORT


def given(port: int | None) -> int | None:
    """Return the port that was asked for. Raises Failed when it is taken."""
    if port is not None and not is_free(port):
        raise Failed(f"Port {port} is taken. Give another one, or leave --port out.")
    return port


def since_start() -> float:
    """Return for how many seconds this process has been there, with the start of Python where the system tells it."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return uptime - ticks / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.monotonic() - LOADED


WELCOME = """
The reading room is at   {url}
The dashboard is at      {url}admin/redis_kit/dashboard/
Log in as                admin, with the password admin
First page after         {seconds:.1f} s

Three things to try
  1. Vote for an article six times in a row, and read the answer to the sixth.
  2. Let yourself be reminded of an article in 10 seconds, and see in your letters how late it came.
  3. Ask for the report in two windows at once, and look at «Locks» on the dashboard meanwhile.

Ctrl-C ends all of it.
"""
