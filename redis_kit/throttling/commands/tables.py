"""Throttles, their rules and decisions, as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from django.utils import timezone

from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.throttling.rules.storage import Rule
from redis_kit.throttling.statistics.counters import ThrottleCalls
from redis_kit.throttling.statistics.offenders import Offender
from redis_kit.throttling.statistics.shadow_report import ShadowReport
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.masking import masked

KINDS = {"ban": "banned", "exempt": "exempt", "override": "rates"}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return a line for each row, below a line of titles."""
    return aligned([columns, *([cut(clean(cell)) for cell in row] for row in rows)])


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield an indented line for each name and its value."""
    for name, value in pairs:
        yield f"  {name:<10} {clean(value)}"


def name_of(shown: str, *, plain: bool) -> str:
    """Return an identity, masked unless ``plain``."""
    return shown if plain or not shown else masked(shown)


def rates_of(throttle: Throttle) -> str:
    """Return the rates of a throttle as text."""
    return "; ".join(map(str, throttle.rates)) or "no limit"


def about(throttle: Throttle, allowed: int, refused: int, period: str) -> Iterator[tuple[str, str]]:
    """Yield the configuration of a throttle and its calls in a period."""
    yield "rates", rates_of(throttle)
    yield "strategy", throttle.strategy
    if throttle.shadow:
        yield "shadow", "refuses nothing, counts what it would refuse"
    if ban := throttle.ban:
        lengths = ", ".join(map(duration, ban.lengths))
        yield "bans", f"after {ban.after:,} refusals within {duration(ban.within)}, for {lengths}"
    yield "allowed", f"{allowed:,} in {period}"
    yield "refused", f"{refused:,} in {period}"


def hours(calls: Iterable[ThrottleCalls]) -> Iterator[str]:
    """Yield a table of the hours with calls, in the time zone of the project."""
    rows = [
        (timezone.localtime(each.start).strftime("%Y-%m-%d %H:%M"), f"{each.allowed:,}", f"{each.refused:,}")
        for each in calls
        if each.allowed or each.refused
    ]
    yield from table(("HOUR", "ALLOWED", "REFUSED"), rows)


def rules(listed: Iterable[Rule], *, plain: bool) -> Iterator[str]:
    """Yield a table of rules."""
    columns = ("RULE FOR", "RULE", "RATES", "ENDS IN", "HASH")
    yield from table(columns, [(_shown(rule, plain=plain), *_holds(rule), rule.identity_hash) for rule in listed])


def offenders(listed: Iterable[Offender], *, plain: bool) -> Iterator[str]:
    """Yield a table of offenders."""
    rows = [
        (name_of(offender.shown, plain=plain) or "-", f"{offender.refusals:,}", offender.identity_hash)
        for offender in listed
    ]
    yield from table(("REFUSED", "TIMES", "HASH"), rows)
    yield "TIMES: in up to a day. Refusals of the last second may be missing."


def standing(decision: Decision, rule: Rule | None) -> Iterator[tuple[str, str]]:
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


def report(result: ShadowReport) -> Iterator[tuple[str, str]]:
    """Yield the report on a throttle in shadow mode."""
    yield "rate", str(result.rate)
    yield "allowed", f"{result.allowed:,} in a day"
    yield "refused", f"{result.refused:,} in a day would be refused, {result.share:.1%}"
    yield "periods", f"{result.windows:,} periods of {duration(result.rate.period)} with calls, in up to 7 days"
    yield "usual", f"at most {result.usual:,} calls in 50 % of the periods"
    yield "high", f"at most {result.high:,} calls in 99.9 % of the periods"
    yield "highest", f"at most {result.highest:,} calls in all periods"
    yield "proposed", str(result.proposed) if result.proposed else "nothing yet: there were no calls"


def _shown(rule: Rule, *, plain: bool) -> str:
    return (name_of(rule.shown, plain=plain) or "-") if rule.identity_hash else "all identities"


def _holds(rule: Rule) -> tuple[str, str, str]:
    left = (rule.until - timezone.now()).total_seconds()
    return KINDS[rule.kind], rule.rates, duration(max(left, 0))
