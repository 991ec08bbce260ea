"""The ways to run ``rk_demo``: the demo, ``--check`` and ``--replay``."""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from demo.console import say
from demo.process import Failed
from demo.session import USUAL_PORT, exports, is_free, running

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CHECK_INTERVAL = 0.2  # seconds between two checks of the processes
LOADED = time.monotonic()


def main(*, port: int | None, check: bool, replay: Path | None, rate: float) -> int:
    """Run it, and return an exit code: 0 on success and when Ctrl-C ends the demo, 1 on failure."""
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        if check:
            return checked(port)
        if replay:
            return replayed(replay, port, rate)
        run_demo(port)
    except Failed as error:
        say(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if check or replay:
            say("\nInterrupted before it was complete.", file=sys.stderr)
            return 1
        say("\nEnded.")
    return 0


def stop(number: int, frame: FrameType | None) -> None:
    """Stop. Further signals are ignored, so that nothing interrupts the clean-up."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_demo(port: int | None) -> None:
    """Run the site with its visitors until a signal. Raises Failed if one of its processes ends by itself."""
    from demo.staff import Staff, seed_queues
    from demo.traffic import Traffic

    with running(port=chosen(port), keep=True) as session:
        traffic, staff = Traffic(session.port), Staff()
        if session.is_new:
            seed_queues()
        staff.start()
        traffic.start()
        try:
            say(WELCOME.format(url=session.url, seconds=since_start(), exports=exports()))
            while True:
                session.check()
                time.sleep(CHECK_INTERVAL)
        finally:
            traffic.stop()
            staff.stop()


def checked(port: int | None) -> int:
    """Check every part over HTTP and print the results."""
    from demo import checks

    os.environ.setdefault("READING_REPORT_SECONDS", "1.5")
    with running(port=given(port), keep=False) as session:
        return checks.run_flow(session, since_start())


def replayed(path: Path, port: int | None, rate: float) -> int:
    """Replay a log to the site and compare the kit's counts with exact ones."""
    from demo import comparison

    with running(port=given(port), keep=False) as session:
        return comparison.run_flow(session, path, rate=rate)


def chosen(port: int | None) -> int | None:
    """Return the port to serve on, None for any free one. Raises Failed if the requested port is taken."""
    if port is None and not is_free(USUAL_PORT):
        say(f"Port {USUAL_PORT} is taken; using another one. Choose one with --port.")
        return None
    return given(port) or USUAL_PORT


def given(port: int | None) -> int | None:
    """Return the requested port. Raises Failed if it is taken."""
    if port is not None and not is_free(port):
        raise Failed(f"Port {port} is taken. Choose another one, or leave out --port.")
    return port


def since_start() -> float:
    """Return the age of this process in seconds, with the start of Python if the system knows it."""
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

On the dashboard
  1. Queues: orders hold dead jobs with their errors; retry them. Parcels fail twice and are retried.
  2. Queues: newsletters is paused with 8 jobs in it. Resume it, and see how soon they are done.
  3. Locks: the catalogue is held, and two callers wait for it. Release it, and see the next holder.
  4. Throttles: ban one of the addresses that are refused most often.
  5. Schedule: letters of 30 days are thrown away every 20 s. Pause that, or run it now.
  6. The button 中文 at the top changes the language.

In the reading room
  7. Vote for an article six times in a row, and read the answer to the sixth.
  8. Ask for a reminder of an article in 10 seconds, and see in your letters how late it came.
  9. Ask for the report in two windows at once.

In another terminal, so that rk_queues, rk_locks and other commands use the demo's server
  {exports}

Ctrl-C ends all of it.
"""
