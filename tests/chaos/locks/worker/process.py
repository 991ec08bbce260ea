"""The program of one competing process: ``python -m tests.chaos.locks.worker.process``.

With ``--seconds`` its workers take random steps until the time is over. Without it one worker obeys commands: each
line of standard input names a step and its arguments, ``["take", {"blocking": false}]``, and each line of standard
output is the answer to a step.
"""

import argparse
import logging
from pathlib import Path
from typing import Any

import django
from django.conf import settings

QUICK = "PRAGMA synchronous = OFF"  # processes are killed here, machines are not


def options() -> argparse.Namespace:
    """Return what the process was told at its start."""
    parser = argparse.ArgumentParser(description="Compete for locks.")
    parser.add_argument("--worker", required=True, help="the name of this process in the history")
    parser.add_argument("--url", required=True, help="of the server, or of a proxy before it")
    parser.add_argument("--folder", type=Path, required=True, help="of the histories and the database")
    parser.add_argument("--kinds", nargs="+", default=["lock"])
    parser.add_argument("--names", type=int, default=1, help="locks of each kind")
    parser.add_argument("--tasks", type=int, default=1, help="workers for each kind")
    parser.add_argument("--lease", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--async", action="store_true", dest="run_async")
    parser.add_argument("--bug", default="", help="the one to seed")
    return parser.parse_args()


def set_up(given: argparse.Namespace) -> None:
    """Make Django, the kit and the database ready."""
    database: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": given.folder / "rows.sqlite3"}
    database["OPTIONS"] = {"timeout": 30, "init_command": QUICK}
    kit = {"PREFIX": "histories", "CONNECTIONS": {"default": {"URL": given.url}}}
    settings.configure(USE_TZ=True, DATABASES={"default": database}, REDIS_KIT=kit)
    django.setup()
    # That the server is away and leases are lost is meant to happen.
    logging.getLogger("redis_kit").setLevel(logging.ERROR)
    logging.getLogger("redis_kit.connections").setLevel(logging.CRITICAL)


if __name__ == "__main__":
    set_up(found := options())
    from tests.chaos.locks.worker import workload  # the models in it need the settings

    workload.begin(found)
