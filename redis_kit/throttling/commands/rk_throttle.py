"""``manage.py rk_throttle``: the figures of throttles, and rules for a limited time."""

import argparse
import json
from collections.abc import Iterable
from itertools import product
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.terminal import duration
from redis_kit.core.text import clean
from redis_kit.core.values.rates import parse
from redis_kit.throttling.commands import plain as as_plain
from redis_kit.throttling.commands import tables
from redis_kit.throttling.discovery import find, hint, project_throttles
from redis_kit.throttling.errors import InvalidRate
from redis_kit.throttling.rules.rules import LIMIT, counts
from redis_kit.throttling.rules.storage import LONGEST, Rule
from redis_kit.throttling.statistics.counters import ThrottleCalls, recent
from redis_kit.throttling.statistics.history import HOURS, throttle_history
from redis_kit.throttling.statistics.reset import reset_by_hash
from redis_kit.throttling.statistics.shadow_report import shadow_report
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.identity_shape import counted_by, fits, has_any_text, named, suggestion
from redis_kit.throttling.values.titles import title

ACTIONS = {
    "list": "list the throttles of the settings and the views",
    "show": "show the rules and most refused identities of a throttle, or the standing of one identity",
    "reset": "forget the calls of an identity and its automatic ban",
    "ban": "refuse every call of an identity",
    "exempt": "allow every call of an identity without counting it",
    "override": "set other rates for an identity, or for all",
    "lift": "end the rule of an identity, or the override for all",
    "report": "show the report of a throttle in shadow mode, with a proposed rate",
}
ARGUMENTS = {
    "show": ("name", "identity?"),
    "reset": ("name", "identity"),
    "ban": ("name", "identity", "seconds"),
    "exempt": ("name", "identity", "seconds"),
    "override": ("name", "rates", "seconds", "identity?"),
    "lift": ("name", "identity?"),
    "report": ("name",),
}


class Command(terminal.KitCommand):
    """List and show throttles, and set rules for a limited time."""

    actions = ACTIONS
    help = "Show the figures of throttles, and ban, exempt or override identities for a limited time."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        types = {"seconds": terminal.seconds(0.001, LONGEST), "rates": _rates}
        for action, about in ACTIONS.items():
            subparser = actions.add_parser(action, help=about)
            for argument in ARGUMENTS.get(action, ()):
                name = argument.rstrip("?")
                count = "?" if name != argument else None
                about_it = terminal.DURATION if name == "seconds" else None
                subparser.add_argument(
                    name, nargs=count, type=types.get(name, str), metavar=name.upper(), help=about_it
                )
            subparser.add_argument("--json", action="store_true", help="for programs: times in seconds")
            terminal.add_everywhere(subparser)
            if action in ARGUMENTS:
                subparser.add_argument(
                    "--using",
                    type=terminal.alias,
                    metavar="CONNECTION",
                    help="alias of the connection, needed if several throttles have this name",
                )
            if action in ("show", "ban", "exempt", "override"):
                subparser.add_argument(
                    "--as-is", action="store_true", help="take an IDENTITY that the keys of the throttle don't make"
                )
            if action in ("reset", "ban", "exempt", "override", "lift"):
                subparser.add_argument("--hash", action="store_true", help="IDENTITY is the hash that show lists")
        show = actions.choices["show"]
        show.add_argument("--plain", action="store_true", help="don't mask identities")
        show.add_argument(
            "--limit",
            type=terminal.whole(1, LIMIT),
            default=100,
            help=f"number of rules, 1 to {LIMIT:,} (default: 100)",
        )
        show.add_argument(
            "--hours",
            type=terminal.whole(1, HOURS),
            help=f"show the calls of the last hours in place of 30 minutes, 1 to {HOURS:,}",
        )
        self.parsers: dict[str, Any] = dict(actions.choices)

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action. Exit code 1 if nothing matches, 69 if Redis is unavailable."""
        try:
            with terminal.failing():
                getattr(self, f"_{action}")(**options)
        except (InvalidName, InvalidValue) as error:
            self.parsers[action].error(clean(str(error)))

    def _list(self, **options: Any) -> None:
        throttles = project_throttles()
        minutes, rule_counts = recent(throttles), counts(throttles)
        sums = {throttle: _sums(minutes[throttle]) for throttle in throttles}
        if options["json"]:
            self._write_json([as_plain.about(each, *sums[each]) | {"rules": rule_counts[each]} for each in throttles])
        elif not throttles:
            self.stdout.write(f"There are no throttles. {hint('', [])}")
        else:
            columns = ("NAME", "RATES", "STRATEGY", "ALLOWED", "REFUSED", "RULES")
            rows = [_row(throttle, *sums[throttle], rule_counts[throttle]) for throttle in throttles]
            self._write(tables.table(columns, rows))
            self.stdout.write("Allowed and refused: calls of the last 30 minutes.")
            if any(throttle.shadow for throttle in throttles):
                self.stdout.write("Throttles in shadow mode allow all calls; the numbers say what they would do.")

    def _show(self, *, name: str, identity: str | None, limit: int, hours: int | None, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        if identity is not None:
            if hours:
                raise InvalidValue("--hours is for a throttle: calls of an identity are not counted by hour.")
            self._show_identity(throttle, identity, **options)
            return
        by_hour = throttle_history(throttle, hours=hours) if hours else []
        sums = _sums(by_hour or recent([throttle])[throttle])
        most, rules = throttle.offenders(), throttle.rules.list(limit)
        more, plain = max(counts([throttle])[throttle] - limit, 0), options["plain"]
        if options["json"]:
            lists: dict[str, Any] = {
                "rules": [as_plain.rule(row, plain=plain) for row in rules],
                "more": more,
                "offenders": [as_plain.offender(row, plain=plain) for row in most],
            }
            if hours:
                lists["hours"] = [as_plain.calls(each) for each in by_hour]
            self._write_json(as_plain.about(throttle, *sums) | lists)
            return
        period = f"{hours:,} h" if hours else "30 minutes"
        self._write([clean(throttle.name), *tables.facts(tables.about(throttle, *sums, period)), ""])
        if hours and any(sums):
            self._write([*tables.hours(by_hour), ""])
        self._write(tables.rules(rules, plain=plain) if rules else ["No rules are in force."])
        if more:
            self.stdout.write(f"{more:,} more rules are in force; --limit shows them.")
        self._write(["", *(tables.offenders(most, plain=plain) if most else ["No call was refused for a day."])])
        names = [*(rule.shown for rule in rules), *(offender.shown for offender in most)]
        if any(tables.name_of(shown, plain=plain) != shown for shown in names):
            self.stdout.write("Identities are masked; --plain shows them as they are stored.")

    def _show_identity(self, throttle: Throttle, identity: str, **options: Any) -> None:
        rule = throttle.rules.of(identity) or throttle.rules.of()
        decision = throttle.peek(identity)
        if options["json"]:
            data = {"throttle": throttle.name, "identity": identity, "rule": as_plain.rule(rule, plain=True)}
            self._write_json(data | {"decision": as_plain.decision(decision)})
        else:
            self._write([f"{clean(throttle.name)}, {clean(identity)}", *tables.facts(tables.standing(decision, rule))])

    def _reset(self, *, name: str, identity: str, **options: Any) -> None:
        throttle = _throttle(name, **options)
        if options["hash"]:
            throttle.rules.of(identity_hash=identity)  # checks it
        if not (reset_by_hash(throttle, identity) if options["hash"] else throttle.reset(identity)):
            text = f"Nothing was reset: {clean(throttle.name)} counts no calls of {clean(identity)}."
            raise CommandError(f"{text} {_wrong_kind(throttle, identity, **options)}".strip())
        said = f"Reset: the calls of {clean(identity)} to {clean(throttle.name)}."
        self._done("reset", throttle.name, said, None, **options)

    def _ban(self, *, name: str, identity: str, seconds: float, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        rule = throttle.rules.ban(seconds=seconds, **_subject(identity, **options))
        said = f"Banned from {clean(throttle.name)} for {duration(seconds)}: {clean(identity)}."
        self._done("ban", throttle.name, said, rule, **options)

    def _exempt(self, *, name: str, identity: str, seconds: float, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        rule = throttle.rules.exempt(seconds=seconds, **_subject(identity, **options))
        said = f"Exempt from {clean(throttle.name)} for {duration(seconds)}: {clean(identity)}."
        self._done("exempt", throttle.name, said, rule, **options)

    def _override(self, *, name: str, rates: str, seconds: float, identity: str | None, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        rule = throttle.rules.override(rates, seconds, **_subject(identity, **options))
        subject = clean(identity or "all identities")
        said = f"Rates of {clean(throttle.name)} are {rule.rates} for {duration(seconds)}: {subject}."
        self._done("override", throttle.name, said, rule, **options)

    def _lift(self, *, name: str, identity: str | None, **options: Any) -> None:
        subject = clean(identity or "all identities")
        throttle = _throttle(name, **options)
        if not throttle.rules.lift(**_subject(identity, **options)):
            text = f"Nothing was lifted: {clean(throttle.name)} has no rule for {subject}."
            raise CommandError(f"{text} {_wrong_kind(throttle, identity, **options)}".strip())
        self._done("lift", throttle.name, f"Lifted: the rule of {clean(throttle.name)} for {subject}.", None, **options)

    def _report(self, *, name: str, **options: Any) -> None:
        throttle = _throttle(name, **options)
        try:
            result = shadow_report(throttle)
        except InvalidValue as error:
            raise CommandError(clean(str(error))) from error
        if options["json"]:
            self._write_json({"name": throttle.name} | as_plain.report(result))
        else:
            self._write([clean(throttle.name), *tables.facts(tables.report(result))])

    def _done(self, action: str, name: str, said: str, rule: Rule | None, **options: Any) -> None:
        if options["json"]:
            fields = {"rule": as_plain.rule(rule, plain=True)} if rule else {}
            self._write_json({"action": action, "throttle": name} | fields)
        else:
            self.stdout.write(said)

    def _throttle_that_makes(self, identity: str | None, name: str, *, as_is: bool = False, **options: Any) -> Throttle:
        """Return a throttle. Raises CommandError if none of its keys makes the identity: it never calls."""
        throttle = _throttle(name, **options)
        wrong = "" if as_is else _wrong_kind(throttle, identity, **options)
        if wrong and not has_any_text(throttle.identity_shapes):
            raise CommandError(f"Nothing was done. {wrong} Give --as-is to use it all the same.")
        self._warn(wrong)
        return throttle

    def _warn(self, text: str) -> None:
        if text:
            self.stderr.write(self.style.WARNING(f"Warning: {text}"))

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)

    def _write_json(self, data: Any) -> None:
        self.stdout.write(json.dumps(data, indent=2))


def _throttle(name: str, *, using: str | None, **options: Any) -> Throttle:
    try:
        return find(project_throttles(), name, using)
    except InvalidName as error:
        raise CommandError(clean(str(error))) from error


def _subject(identity: str | None, **options: Any) -> dict[str, Any]:
    if identity is None and options["hash"]:
        raise InvalidValue("--hash needs an IDENTITY: the hash that show lists.")
    if identity == "":
        raise InvalidName("IDENTITY is empty; omit it to mean all identities.")
    return {"identity_hash": identity} if options["hash"] else {"identity": identity}


def _wrong_kind(throttle: Throttle, identity: str | None, *, hash: bool = False, **options: Any) -> str:
    """Return what to say about an identity that the keys of a throttle don't make; empty text for any other."""
    kinds = named(throttle.identity_shapes)
    if not identity or hash or not kinds or fits(identity, kinds):
        return ""
    combined = (parts for shape in kinds for parts in product(*(starts or ("...",) for starts in shape)))
    starts = dict.fromkeys(map(" ".join, combined))
    text = f"Identities of {clean(throttle.name)} begin with {' or '.join(starts)}, unlike {clean(identity)}."
    if likely := suggestion(identity, kinds):
        return f"{text} Did you mean {clean(likely)}?"
    by = counted_by(kinds)
    return f"{text} {clean(throttle.name)} counts by {by}." if by else text


def _row(throttle: Throttle, allowed: int, refused: int, rules: int) -> tuple[str, ...]:
    strategy = f"{throttle.strategy}{', shadow' if throttle.shadow else ''}"
    return (
        title(throttle.name, throttle.using),
        tables.rates_of(throttle),
        strategy,
        f"{allowed:,}",
        f"{refused:,}",
        f"{rules:,}",
    )


def _sums(minutes: list[ThrottleCalls]) -> tuple[int, int]:
    return sum(minute.allowed for minute in minutes), sum(minute.refused for minute in minutes)


def _rates(text: str) -> str:
    try:
        parse(text)
    except InvalidRate as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
