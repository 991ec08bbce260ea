"""``manage.py rk_throttle``: the figures of throttles, and rules for a limited time."""

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidName, InvalidRate, InvalidValue
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.core.values.rates import parse
from redis_kit.throttling.discovery import find, hint, project_throttles, title
from redis_kit.throttling.identity import ADDRESS, USER, has_any_text, masked, suggestion
from redis_kit.throttling.rules import LIMIT, LONGEST, Rule, counts, reset_by_hash
from redis_kit.throttling.statistics import (
    HOURS,
    ThrottleCalls,
    recent,
    shadow_report,
    throttle_history,
)
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Decision

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "list": (),
    "show": ("name", "identity?"),
    "reset": ("name", "identity"),
    "ban": ("name", "identity", "seconds"),
    "exempt": ("name", "identity", "seconds"),
    "override": ("name", "rates", "seconds", "identity?"),
    "lift": ("name", "identity?"),
    "report": ("name",),
}
FORMS = {ADDRESS: "ip:<address>", USER: "user:<primary key>"}  # how identities begin
KINDS = {"ban": "banned", "exempt": "exempt", "override": "rates"}


class Command(terminal.ActionCommand):
    """List and show throttles, and set rules for a limited time."""

    help = "Show the figures of throttles, and ban, exempt or override identities for a limited time."
    actions = {
        "list": "list the throttles of the settings and the views",
        "show": "show the rules and most refused identities of a throttle, or the standing of one identity",
        "reset": "forget the calls of an identity and its automatic ban",
        "ban": "refuse every call of an identity",
        "exempt": "allow every call of an identity without counting it",
        "override": "set other rates for an identity, or for all",
        "lift": "end the rule of an identity, or the override for all",
        "report": "show the report of a throttle in shadow mode, with a proposed rate",
    }

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        add, types = parser.add_argument, {"seconds": terminal.seconds(0.001, LONGEST), "rates": _rates}
        for argument in ARGUMENTS[action]:
            name = argument.rstrip("?")
            count = "?" if name != argument else None
            about = terminal.DURATION if name == "seconds" else None
            add(name, nargs=count, type=types.get(name, str), metavar=name.upper(), help=about)
        add("--json", action="store_true", help="for programs: times in seconds")
        if action != "list":
            about = "alias of the connection, needed if several throttles have this name"
            add("--using", type=terminal.alias, metavar="CONNECTION", help=about)
        if action in ("show", "ban", "exempt", "override"):
            add("--as-is", action="store_true", help="take an IDENTITY that the keys of the throttle don't make")
        if action in ("reset", "ban", "exempt", "override", "lift"):
            add("--hash", action="store_true", help="IDENTITY is the hash that show lists")
        if action == "show":
            add("--plain", action="store_true", help="don't mask identities")
            about = f"number of rules, 1 to {LIMIT:,} (default: 100)"
            add("--limit", type=terminal.whole(1, LIMIT), default=100, help=about)
            about = f"show the calls of the last hours in place of 30 minutes, 1 to {HOURS:,}"
            add("--hours", type=terminal.whole(1, HOURS), help=about)

    def _list(self, **options: Any) -> None:
        throttles = project_throttles()
        minutes, rule_counts = recent(throttles), counts(throttles)
        sums = {throttle: _sums(minutes[throttle]) for throttle in throttles}
        if options["json"]:
            self.write_json([_plain(each, sums[each]) | {"rules": rule_counts[each]} for each in throttles])
        elif not throttles:
            self.stdout.write(f"There are no throttles. {hint('', [])}")
        else:
            rows = [
                (
                    title(throttle.name, throttle.using),
                    _rates_of(throttle),
                    f"{throttle.strategy}{', shadow' if throttle.shadow else ''}",
                    *(f"{number:,}" for number in (*sums[throttle], rule_counts[throttle])),
                )
                for throttle in throttles
            ]
            self._write_table(("NAME", "RATES", "STRATEGY", "ALLOWED", "REFUSED", "RULES"), rows)
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
        more = max(counts([throttle])[throttle] - limit, 0)
        stored = [most, rules]
        if not options["plain"]:
            most = [row._replace(shown=row.shown and masked(row.shown)) for row in most]
            rules = [row._replace(shown=row.shown and masked(row.shown)) for row in rules]
        if options["json"]:
            lists = {"rules": [row._asdict() for row in rules], "more": more, "offenders": [r._asdict() for r in most]}
            if hours:
                lists["hours"] = [each._asdict() for each in by_hour]
            self.write_json(_plain(throttle, sums) | lists)
            return
        self._write_facts(throttle.name, _about(throttle, sums, f"{hours:,} h" if hours else "30 minutes"))
        self.stdout.write("")
        if hours and any(sums):
            with_calls = [each for each in by_hour if each.allowed or each.refused]
            hourly = [(_local(each.start), f"{each.allowed:,}", f"{each.refused:,}") for each in with_calls]
            self._write_table(("HOUR", "ALLOWED", "REFUSED"), hourly)
            self.stdout.write("")
        if rules:
            shown = [rule.shown or "-" if rule.identity_hash else "all identities" for rule in rules]
            in_force = [(who, *_holds(rule), rule.identity_hash) for who, rule in zip(shown, rules, strict=True)]
            self._write_table(("RULE FOR", "RULE", "RATES", "ENDS IN", "HASH"), in_force)
        else:
            self.stdout.write("No rules are in force.")
        if more:
            self.stdout.write(f"{more:,} more rules are in force; --limit shows them.")
        self.stdout.write("")
        if most:
            refused = [(row.shown or "-", f"{row.refusals:,}", row.identity_hash) for row in most]
            self._write_table(("REFUSED", "TIMES", "HASH"), refused)
            self.stdout.write("TIMES: in up to a day. Refusals of the last second may be missing.")
        else:
            self.stdout.write("No call was refused for a day.")
        if stored != [most, rules]:
            self.stdout.write("Identities are masked; --plain shows them as they are stored.")

    def _show_identity(self, throttle: Throttle, identity: str, **options: Any) -> None:
        rule = throttle.rules.of(identity) or throttle.rules.of()
        decision = throttle.peek(identity)
        if options["json"]:
            data = {"throttle": throttle.name, "identity": identity, "rule": rule and rule._asdict()}
            finite = {name: None if value == math.inf else value for name, value in decision._asdict().items()}
            self.write_json(data | {"decision": finite})
        else:
            self._write_facts(f"{throttle.name}, {identity}", _standing(decision, rule))

    def _reset(self, *, name: str, identity: str, **options: Any) -> None:
        throttle = _throttle(name, **options)
        if options["hash"]:
            throttle.rules.of(identity_hash=identity)  # checks it
        if not (reset_by_hash(throttle, identity) if options["hash"] else throttle.reset(identity)):
            text = f"Nothing was reset: {clean(throttle.name)} counts no calls of {clean(identity)}."
            raise CommandError(f"{text} {_wrong_kind(throttle, identity, **options)}".strip())
        self._done("reset", throttle, f"Reset: the calls of {clean(identity)} to {clean(throttle.name)}.", **options)

    def _ban(self, **options: Any) -> None:
        self._set("ban", "Banned", **options)

    def _exempt(self, **options: Any) -> None:
        self._set("exempt", "Exempt", **options)

    def _set(self, action: str, word: str, *, name: str, identity: str, seconds: float, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        rule = getattr(throttle.rules, action)(seconds=seconds, **_subject(identity, **options))
        said = f"{word} from {clean(throttle.name)} for {duration(seconds)}: {clean(identity)}."
        self._done(action, throttle, said, rule, **options)

    def _override(self, *, name: str, rates: str, seconds: float, identity: str | None, **options: Any) -> None:
        throttle = self._throttle_that_makes(identity, name, **options)
        rule = throttle.rules.override(rates, seconds, **_subject(identity, **options))
        subject = clean(identity or "all identities")
        said = f"Rates of {clean(throttle.name)} are {rule.rates} for {duration(seconds)}: {subject}."
        self._done("override", throttle, said, rule, **options)

    def _lift(self, *, name: str, identity: str | None, **options: Any) -> None:
        throttle, subject = _throttle(name, **options), clean(identity or "all identities")
        if not throttle.rules.lift(**_subject(identity, **options)):
            text = f"Nothing was lifted: {clean(throttle.name)} has no rule for {subject}."
            raise CommandError(f"{text} {_wrong_kind(throttle, identity, **options)}".strip())
        self._done("lift", throttle, f"Lifted: the rule of {clean(throttle.name)} for {subject}.", **options)

    def _report(self, *, name: str, **options: Any) -> None:
        throttle = _throttle(name, **options)
        try:
            report = shadow_report(throttle)
        except InvalidValue as error:
            raise CommandError(clean(str(error))) from error
        if options["json"]:
            self.write_json({"name": throttle.name, **report._asdict(), "share": report.share})
            return
        period = duration(report.rate.period)
        facts = {
            "rate": str(report.rate),
            "allowed": f"{report.allowed:,} in a day",
            "refused": f"{report.refused:,} in a day would be refused, {report.share:.1%}",
            "periods": f"{report.windows:,} periods of {period} with calls, in up to 7 days",
            "usual": f"at most {report.usual:,} calls in 50 % of the periods",
            "high": f"at most {report.high:,} calls in 99.9 % of the periods",
            "highest": f"at most {report.highest:,} calls in all periods",
            "proposed": str(report.proposed) if report.proposed else "nothing yet: there were no calls",
        }
        self._write_facts(throttle.name, facts.items())

    def _done(self, action: str, throttle: Throttle, said: str, rule: Rule | None = None, **options: Any) -> None:
        if options["json"]:
            fields = {"rule": rule._asdict()} if rule else {}
            self.write_json({"action": action, "throttle": throttle.name} | fields)
        else:
            self.stdout.write(said)

    def _write_table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self.write_lines(aligned([columns, *([cut(clean(cell)) for cell in row] for row in rows)]))

    def _write_facts(self, heading: str, facts: Iterable[tuple[str, str]]) -> None:
        self.write_lines([clean(heading), *(f"  {name:<10} {clean(value)}" for name, value in facts)])

    def _throttle_that_makes(self, identity: str | None, name: str, *, as_is: bool = False, **options: Any) -> Throttle:
        """Return a throttle. Raises CommandError if none of its keys makes the identity: it never calls."""
        throttle = _throttle(name, **options)
        wrong = "" if as_is else _wrong_kind(throttle, identity, **options)
        if wrong and not has_any_text(throttle.identity_shapes):
            raise CommandError(f"Nothing was done. {wrong} Give --as-is to use it all the same.")
        if wrong:
            self.stderr.write(self.style.WARNING(f"Warning: {wrong}"))
        return throttle


def _throttle(name: str, *, using: str | None, **options: Any) -> Throttle:
    try:
        return find(project_throttles(), name, using)
    except InvalidName as error:
        raise CommandError(clean(str(error))) from error


def _subject(identity: str | None, **options: Any) -> dict[str, Any]:
    if identity is None and options["hash"]:
        raise InvalidValue("--hash needs an IDENTITY: the hash that show lists.")
    if identity == "":
        raise InvalidName("IDENTITY is empty; only override and lift may omit it, to mean all identities.")
    return {"identity_hash": identity} if options["hash"] else {"identity": identity}


def _wrong_kind(throttle: Throttle, identity: str | None, *, hash: bool = False, **options: Any) -> str:
    """Return what to say about an identity that the keys of a throttle don't make; empty text for any other."""
    likely = suggestion(identity, throttle.identity_shapes) if identity and not hash else None
    if likely is None:
        return ""
    kinds = [shape for shape in throttle.identity_shapes if any(shape)]
    combined = (parts for shape in kinds for parts in product(*(starts or ("...",) for starts in shape)))
    forms = dict.fromkeys(" ".join(FORMS.get(part, part) for part in parts) for parts in combined)
    name = clean(throttle.name)
    text = f"No key of {name} makes {clean(str(identity))}. Its identities begin with {' or '.join(forms)}."
    if likely:
        return f"{text} Did you mean {clean(likely)}?"
    starts = {start for shape in kinds for part in shape for start in part}
    if (USER in starts) == (ADDRESS in starts):
        return text
    return f"{text} {name} counts by {'user' if USER in starts else 'address'}."


def _sums(minutes: list[ThrottleCalls]) -> tuple[int, int]:
    return sum(minute.allowed for minute in minutes), sum(minute.refused for minute in minutes)


def _rates(text: str) -> str:
    try:
        parse(text)
    except InvalidRate as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _rates_of(throttle: Throttle) -> str:
    return "; ".join(map(str, throttle.rates)) or "no limit"


def _about(throttle: Throttle, sums: tuple[int, int], period: str) -> Iterator[tuple[str, str]]:
    yield "rates", _rates_of(throttle)
    yield "strategy", throttle.strategy
    if throttle.shadow:
        yield "shadow", "refuses nothing, counts what it would refuse"
    if ban := throttle.ban:
        lengths = ", ".join(map(duration, ban.lengths))
        yield "bans", f"after {ban.after:,} refusals within {duration(ban.within)}, for {lengths}"
    yield "allowed", f"{sums[0]:,} in {period}"
    yield "refused", f"{sums[1]:,} in {period}"


def _standing(decision: Decision, rule: Rule | None) -> Iterator[tuple[str, str]]:
    """Yield the decision on the next call of an identity, and its rule."""
    reason = f" ({decision.reason})" if decision.reason else ""
    yield "now", ("allowed" if decision.allowed else "refused") + reason
    if not decision.allowed:
        yield "retry in", duration(decision.retry_after)
    if decision.rate and decision.reason in ("", "shadow"):
        yield "rate", str(decision.rate)
        yield "limit", f"{decision.limit:,}"
        yield "remaining", f"{decision.remaining:,}"
        yield "resets in", duration(decision.reset_after)
    if rule:
        kind, rates, left = _holds(rule)
        subject = "" if rule.identity_hash else ", for all identities"
        yield "rule", f"{f'{kind} {rates}'.strip()}{subject}, ends in {left}"


def _holds(rule: Rule) -> tuple[str, str, str]:
    left = (rule.until - timezone.now()).total_seconds()
    return KINDS[rule.kind], rule.rates, duration(max(left, 0))


def _local(time: datetime) -> str:
    return timezone.localtime(time).strftime("%Y-%m-%d %H:%M")


def _plain(throttle: Throttle, sums: tuple[int, int]) -> dict[str, Any]:
    """Return the configuration of a throttle and its calls in the period that was asked for."""
    fields = {name: getattr(throttle, name) for name in ("name", "using", "rates", "strategy", "shadow")}
    return fields | {"allowed": sums[0], "refused": sums[1]}
