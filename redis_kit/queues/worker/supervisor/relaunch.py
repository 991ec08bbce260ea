"""The program of a restarted worker: it runs the worker's command, given as its arguments.

If another change breaks the settings before the command begins, it waits for the next one.
"""

import os
import runpy
import sys
from pathlib import Path

from redis_kit.queues.worker.supervisor import autoreload


def main() -> None:
    """Run the command."""
    arguments = sys.argv
    try:
        _run(arguments[1:])
    except (Exception, SystemExit):
        if os.environ.pop(autoreload.RESTARTED, None) is None:  # the command has begun, or is only tried
            raise
        sys.argv = arguments
        autoreload.wait_for_change()


def _run(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        if not sys.flags.safe_path:
            sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
