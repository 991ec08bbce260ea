"""``manage.py rk_demo``: the example site with everything that it needs, in one command."""

import argparse
import zlib
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

RATES = (1.0, 10_000.0)


class Command(BaseCommand):
    """Run the example site with its own server, a worker and visitors, until Ctrl-C."""

    help = (
        "Run the example site with its own server, a worker and simulated visitors, until Ctrl-C. With --check, check "
        "every part and exit. With --replay, replay an access log, compare the counts and exit."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options; a wrong one gives the usage and exit code 2."""
        self.parser = parser
        parser.add_argument("--port", type=port, help="port to serve on (default: 8000, or a free one)")
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--check", action="store_true", help="check each part over HTTP; exit code 1 if one fails")
        either.add_argument(
            "--replay", type=log, metavar="FILE", help="an access log in Combined Log Format, or its .gz"
        )
        parser.add_argument("--rate", type=rate, help="requests per second of a replay, at most; 500 by default")

    def handle(self, *, port: int | None, check: bool, replay: Path | None, rate: float | None, **options: Any) -> None:
        """Run the demo. Raises SystemExit with the exit code."""
        if rate is not None and replay is None:
            self.parser.error("argument --rate: only with --replay")
        if replay is not None:
            self._require_a_request(replay)
        # Imported here to keep --help and the project's other commands fast.
        from demo import main

        raise SystemExit(main.main(port=port, check=check, replay=replay, rate=rate or 500.0))

    def _require_a_request(self, path: Path) -> None:
        from demo import access_log

        try:
            has_request = any(access_log.read(path))
        except (EOFError, OSError, zlib.error) as error:
            self.parser.error(f"argument --replay: {str(path)!r} can't be read: {error}")
        if not has_request:
            self.parser.error(f"argument --replay: {str(path)!r} holds no request in Combined Log Format")


def port(text: str) -> int:
    """Return a port that an account without privileges may serve on."""
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1024 to 65535")
    return int(text)


def rate(text: str) -> float:
    """Return a number of requests per second."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not RATES[0] <= value <= RATES[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of requests per second from 1 to 10,000")
    return value


def log(text: str) -> Path:
    """Return the path of a file that can be read."""
    path = Path(text)
    try:
        path.open("rb").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} can't be read: {error.strerror}") from None
    return path
