"""Tools of management commands: arguments, failures with their exit codes, and text for a terminal."""

import argparse
import errno
import io
import ipaddress
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from itertools import accumulate
from typing import Any, Literal

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser, SystemCheckError
from django.db import OperationalError, ProgrammingError
from django.utils import translation

from redis_kit.core import text
from redis_kit.core.client.addresses import aliases
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue, RedisFailure
from redis_kit.core.keys import encode
from redis_kit.core.text import clean, did_you_mean, number, seconds_of, text_width

UNAVAILABLE, UNWRITABLE, MISCONFIGURED = 69, 74, 78  # EX_UNAVAILABLE, EX_IOERR and EX_CONFIG of sysexits.h
OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # errors of a write
PIPE_CLOSED = 141  # 128 + SIGPIPE, as a shell reports it
DURATION = "seconds, or a duration such as 15m, 2h or 7d"  # the help of an argument that seconds() reads
EXAMPLES = ("30s", "15m", "2h", "7d")  # of durations, in the error of seconds()
BAR = 30  # characters of a progress bar
MINUTES = 120.0  # seconds from which on rounded_duration() is in minutes
WIDEST = 60  # letters of the usual width in a column
OWN_CHECKS = ["redis_kit"]  # tags
NO_ACTION = "the following arguments are required: ACTION"  # its error without one


class ClosedOutput(io.StringIO):
    """The output of a process that was started without one."""

    def write(self, text: str) -> int:
        """Raise OSError."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class KitCommand(BaseCommand):
    """The base of these commands: wrong settings end them with 78, and ``--help`` lists the exit codes."""

    requires_system_checks: list[str] | Literal["__all__"] = OWN_CHECKS
    exit_codes = (
        "Exit codes: 0 done, 1 nothing has this name or nothing to do, 2 wrong arguments, 69 Redis is unavailable, "
        "78 wrong settings."
    )
    #: What each action does, for the error without one.
    actions: Mapping[str, str] = {}

    def __init__(self, stdout: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(stdout or sys.stdout or ClosedOutput(), *args, **kwargs)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, with the exit codes at the end of its help. Options have no shorter names."""
        parser = super().create_parser(prog_name, subcommand, epilog=self.exit_codes, allow_abbrev=False, **kwargs)
        plain_error = parser.error

        def error(message: str) -> None:
            if message == NO_ACTION:
                width = max(map(len, self.actions), default=0)
                message += "".join(f"\n  {name:{width}}  {about}" for name, about in self.actions.items())
            plain_error(message)

        parser.error = error  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. If its output can't be written, it ends with 74.

        If nobody reads its output any more, as behind ``| head``, it ends as by SIGPIPE.
        """
        try:
            with suppress(AttributeError, OSError):  # it may be in memory, or have become a pipe
                self.stdout.reconfigure(errors="backslashreplace")
            output = super().execute(*args, **options)
            self.stdout.flush()  # or the interpreter's end would fail
        except OSError as error:
            is_closed = isinstance(error, BrokenPipeError)
            if not is_closed and error.errno not in OF_OUTPUT:
                raise
            with suppress(OSError, ValueError, AttributeError):  # the output may not be a file
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if is_closed:
                raise SystemExit(PIPE_CLOSED) from error
            raise CommandError(f"The output can't be written: {error.strerror}.", returncode=UNWRITABLE) from error
        return output

    def report(self, sentence: str, data: Any, *, as_json: bool) -> None:
        """Print an outcome: a sentence, or its data as JSON."""
        self.stdout.write(json.dumps(data) if as_json else sentence)

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print some lines."""
        for line in lines:
            self.stdout.write(line)

    def write_json(self, data: Any) -> None:
        """Print indented JSON. Times are written as in ISO 8601, and other values that JSON lacks as their text."""
        self.stdout.write(json.dumps(data, indent=2, default=_plain))

    def check(self, *args: Any, **options: Any) -> None:
        """Run the checks that this command needs. The exit code for errors is 78, as for all wrong settings."""
        try:
            super().check(*args, **options)
        except SystemCheckError as error:
            error.returncode = MISCONFIGURED
            raise
        except ImproperlyConfigured as error:  # of a module of the project that a check imports
            if options.get("tags") != OWN_CHECKS and not isinstance(error, ConfigurationError):
                self.check(tags=OWN_CHECKS)  # if they know the cause, they have a hint
            raise CommandError(clean(str(error)), returncode=MISCONFIGURED) from error


class ActionCommand(KitCommand):
    """A command with actions. The method ``_list`` runs the action ``list``, with its options."""

    parsers: Mapping[str, CommandParser]

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions, each with its options."""
        added = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        self.parsers = added.choices
        for action, about in self.actions.items():
            subparser = added.add_parser(action, help=about)
            self.add_options(action, subparser)
            add_everywhere(subparser)

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        raise NotImplementedError

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action. Exit code 1 if there is nothing to do, 2 for a wrong value, 69 while Redis is unavailable."""
        try:
            with failing():
                getattr(self, f"_{action}")(**options)
        except (InvalidName, InvalidValue) as error:
            self.parsers[action].error(clean(str(error)))


class Once(argparse.Action):
    """Stores the value of an option that may be given once: of two the first would be dropped without a word."""

    _before: argparse.Namespace | None = None

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Store it. A second one is an error."""
        if self._before is namespace:
            raise argparse.ArgumentError(self, "may be given only once")
        self._before = namespace
        setattr(namespace, self.dest, values)


@contextmanager
def failing() -> Iterator[None]:
    """End the command with 69 if Redis is unavailable, 78 if the settings are wrong, and 1 if the database fails."""
    try:
        yield
    except RedisFailure as error:
        raise CommandError(clean(str(error)), returncode=UNAVAILABLE) from error
    except ImproperlyConfigured as error:
        raise CommandError(clean(str(error)), returncode=MISCONFIGURED) from error
    except (OperationalError, ProgrammingError) as error:
        reason = clean(str(error).partition("\n")[0])
        raise CommandError(f"The database failed: {reason}. If it lacks a table, run manage.py migrate.") from error


def name(text: str) -> str:
    """Read an argument that names something in Redis."""
    try:
        encode(text)
    except InvalidName as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def add_everywhere(parser: argparse.ArgumentParser) -> None:
    """Add the options that Django gives every command to the parser of an action. Its help does not repeat them.

    As in Django, options have no shorter names.
    """
    parser.allow_abbrev = False
    hidden: dict[str, Any] = {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS}
    for option in ("--settings", "--pythonpath"):
        parser.add_argument(option, **hidden)
    for option in ("--traceback", "--no-color", "--force-color", "--skip-checks"):
        parser.add_argument(option, action="store_true", **hidden)
    parser.add_argument("-v", "--verbosity", type=int, choices=range(4), **hidden)


def add_no_input(parser: argparse.ArgumentParser) -> None:
    """Add the option to skip confirm(), under the names that it has in Django's commands."""
    parser.add_argument(
        "--noinput", "--no-input", action="store_true", dest="no_input", help="do not ask for confirmation"
    )


def confirm(question: str, *answers: str, nothing: str) -> None:
    """Ask on the terminal. Raise CommandError for any other answer; ``nothing`` says that nothing was done."""
    if sys.stdin is None or not sys.stdin.isatty():
        wrong = "a confirmation is needed, and there is no terminal to ask on"
        raise CommandError(f"{nothing}: {wrong}. Give --no-input to do it without.", returncode=2)
    try:
        typed = input(question)
    except EOFError:
        typed = ""
        print()  # ends the line of the question
    if typed not in answers:
        raise CommandError(f"{nothing}: the answer does not match. Give --no-input to do it without being asked.")


def alias(text: str) -> str:
    """Read an argument that names a connection."""
    if text not in aliases():
        near = did_you_mean(text, aliases())
        known = ", ".join(sorted(aliases()))
        raise argparse.ArgumentTypeError(f"{text!a} is not a connection; there are {known}. {near}".strip())
    return text


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return what reads an argument that is a duration in this range: seconds, or a number with a unit."""
    examples = " or ".join(each for each in EXAMPLES if least <= seconds_of(each) <= most)

    def read(text: str) -> float:
        try:
            duration = seconds_of(text)
        except ValueError:
            duration = math.nan
        if not least <= duration <= most:
            wrong = f"is not a number of seconds between {number(least)} and {number(most)}"
            hint = f", or a duration such as {examples}" if examples else ""
            raise argparse.ArgumentTypeError(f"{text[:80]!a} {wrong}{hint}")
        return duration

    return read


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return what reads an argument that is a whole number in this range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"{text[:80]!a} is not a whole number between {least} and {most}")
        return int(text)

    return read


def ip_address(text: str) -> str:
    """Read an argument that is an IP address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!a} is not an IP address, such as 0.0.0.0") from error


def aligned(rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> Iterator[str]:
    """Yield a line for each row, the first of which are titles; the columns named in ``right`` end at one place."""
    table = [[clean(text) for text in row] for row in rows]
    widths = [max(map(text_width, column)) for column in zip(*table, strict=True)]
    for row in table:
        blanks = [" " * (width - text_width(text)) for text, width in zip(row, widths, strict=True)]
        cells = enumerate(zip(row, blanks, strict=True))
        yield "  ".join(blank + text if at in right else text + blank for at, (text, blank) in cells).rstrip()


def cut(text: str) -> str:
    """Return text of at most 60 columns."""
    start = text[: WIDEST + 1]
    if text_width(start) <= WIDEST:
        return text
    return f"{text[: sum(width < WIDEST for width in accumulate(map(text_width, start)))]}…"


def duration(seconds: float) -> str:
    """Return seconds in English words: ``7 ms``, ``41.2 s``, ``3 min 20 s``, ``12 d 5 h``; ``never`` for infinity."""
    with translation.override(None):
        return text.duration(seconds)


def rounded_duration(seconds: float) -> str:
    """Return seconds in English words, without parts that are 0: ``90.5 s``, ``6 min 44 s``, ``24 h``."""
    if seconds < MINUTES:
        return f"{seconds:.1f} s"
    words = duration(seconds if seconds < 3600 else round(seconds / 60) * 60)
    for rest in (" 0 s", " 0 min", " 0 h"):
        words = words.removesuffix(rest)
    return words


def estimate(seconds: float) -> str:
    """Return an estimated time in English words, in two digits and rounded up: ``~1.1 s``."""
    with translation.override(None):
        return text.estimate(seconds)


def progress_bar(stream: Any, total: int) -> Callable[[int], None]:
    """Return what draws a bar for a number that grows to ``total``. It draws nothing if nobody watches the stream."""

    def draw(done: int) -> None:
        share = min(1.0, done / max(1, total))
        if stream.isatty():
            stream.write(
                f"\r[{'#' * round(share * BAR):{BAR}}] {share:4.0%} {done:,}", ending="" if share < 1 else "\n"
            )

    return draw


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
