"""The tables of the dashboard's page about throttles: throttles, the most refused identities, and rules."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Lines, Link, Table
from redis_kit.core.text import duration, grouped
from redis_kit.throttling.dashboard.actions import Target
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.rules import Rule
from redis_kit.throttling.statistics.counters import ThrottleCalls
from redis_kit.throttling.statistics.offenders import Offender
from redis_kit.throttling.statistics.overview import ThrottleFigures
from redis_kit.throttling.statistics.shadow_report import ShadowReport
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.masking import masked

OFFENDERS = 20  # rows
OF_IDENTITIES = ("reset", "ban", "exempt", "override")
THROTTLES = _("Throttles")
REFUSED_MOST = _("Refused most often, in up to a day")
SHADOW_REFUSED_MOST = _("Would be refused most often (shadow mode), in up to a day")
FAILURES = {"open": _("allow"), "closed": _("refuse"), "local": _("count in each process")}


def throttles(figures: Sequence[ThrottleFigures], title: Any = THROTTLES) -> Table:
    """Return the table of throttles. Each name links to the page of its throttle."""
    return Table.of(
        title,
        figures,
        [
            (_("Throttle"), _linked),
            (_("Rates"), _rates),
            (_("Strategy"), lambda row: row.throttle.strategy),
            (_("If Redis is unavailable"), lambda row: FAILURES.get(row.throttle.policy(), row.throttle.policy())),
            (_("Allowed per minute"), lambda row: _per_minute([each.allowed for each in true_minutes(row)])),
            (_("Refused per minute"), lambda row: _per_minute([each.refused for each in true_minutes(row)])),
            (_("Override"), lambda row: row.override and row.override.rates),
        ],
        empty=_("No throttle has been built in this process."),
        actions=("override_all",),
        values=[Target.of(row.throttle).value if row.can_have_rules else "" for row in figures],
    )


def offenders(figures: Sequence[ThrottleFigures], title: Any = REFUSED_MOST, *, unmasked: bool) -> Table:
    """Return the table of the most refused identities."""
    most = [(row.throttle, offender) for row in figures for offender in row.offenders]
    shown = sorted(most, key=lambda pair: -pair[1].refusals)[:OFFENDERS]
    in_force = {(row.throttle, each.identity_hash): each for row in figures for each in row.offender_rules}
    return Table.of(
        title,
        shown,
        [
            (_("Identity"), lambda pair: _identity(pair[1], unmasked=unmasked)),
            (_("Throttle"), lambda pair: _name(pair[0])),
            (_("Refusals"), lambda pair: pair[1].refusals),
            (_("Rule"), lambda pair: rule(in_force.get((pair[0], pair[1].identity_hash)))),
        ],
        empty=_("No call was refused."),
        actions=OF_IDENTITIES,
        values=[Target.of(throttle, offender.identity_hash).value for throttle, offender in shown],
    )


def rules(figures: Sequence[ThrottleFigures], *, unmasked: bool) -> Table:
    """Return the table of rules."""
    in_force = [(row.throttle, rule) for row in figures for rule in row.rules]
    shown = sorted(in_force, key=lambda pair: pair[1].until)[:MOST_ROWS]
    return Table(
        _("Rules in force, in the order in which they end"),
        (_("Identity"), _("Throttle"), _("Rule"), _("Ends")),
        [(_identity(rule, unmasked=unmasked), _name(throttle), _kind(rule), rule.until) for throttle, rule in shown],
        empty=_("No rules are in force."),
        actions=("lift",),
        values=[Target.of(throttle, rule.identity_hash).value for throttle, rule in shown],
    )


def rule(in_force: Rule | None) -> Any:
    """Return the cell of the rule of an identity, if it has one."""
    return in_force and Lines((_kind(in_force), in_force.until))


def true_minutes(figures: ThrottleFigures) -> Sequence[ThrottleCalls]:
    """Return the calls by minute, see true_calls()."""
    return true_calls(figures.throttle, figures.minutes)


def true_calls(throttle: BaseThrottle, calls: Sequence[ThrottleCalls]) -> Sequence[ThrottleCalls]:
    """Return the true decisions: a throttle in shadow mode allowed all calls."""
    if not throttle.shadow:
        return calls
    return [each._replace(allowed=each.allowed + each.refused, refused=0) for each in calls]


def _linked(figures: ThrottleFigures) -> Any:
    target = Target.of(figures.throttle)
    name = Link(target.shown, "throttles", target.asked)
    if not figures.throttle.shadow:
        return name
    would_be = sum(minute.refused for minute in figures.minutes) / len(figures.minutes)
    return Lines((name, _("shadow mode: refuses nothing, would refuse %s per minute") % f"{would_be:.1f}"))


def _rates(figures: ThrottleFigures) -> Any:
    rates, ban = "; ".join(map(str, figures.throttle.rates)) or _("no limit"), figures.throttle.ban
    return Lines((rates, _bans(ban))) if ban else rates


def _bans(ban: Ban) -> Any:
    lengths = ", ".join(map(duration, ban.lengths))
    return _("bans after %(count)s refusals within %(within)s, for %(lengths)s") % {
        "count": grouped(ban.after),
        "within": duration(ban.within),
        "lengths": lengths,
    }


def _kind(rule: Rule) -> Any:
    return {"ban": _("banned"), "exempt": _("exempt")}.get(rule.kind) or rule.rates


def _name(throttle: BaseThrottle) -> str:
    return Target.of(throttle).shown


def _identity(row: Offender | Rule, *, unmasked: bool) -> Any:
    if not row.identity_hash:
        return _("all identities")
    shown = row.shown if unmasked or not row.shown else masked(row.shown)
    return Lines((shown, row.identity_hash))


def _per_minute(calls: Sequence[int]) -> float:
    """Return a rate, which is 0 only without calls: a call in 30 minutes is 0.03."""
    rate = sum(calls) / len(calls)
    return round(rate, 1) or round(rate, 2)


def reports_table(reports: Sequence[tuple[ThrottleFigures, ShadowReport]]) -> Table:
    """Return the reports of throttles in shadow mode."""
    return Table(
        _("Shadow mode: calls that would be refused"),
        (
            _("Throttle"),
            _("First rate"),
            _("Calls in a day"),
            _("Would be refused"),
            _("99.9 % of periods, at most"),
            _("All periods, at most"),
            _("Proposed rate"),
        ),
        [(Target.of(figures.throttle).shown, str(report.rate), *_figures(report)) for figures, report in reports],
    )


def _figures(report: ShadowReport) -> tuple[Any, ...]:
    calls = report.allowed + report.refused
    share = f"{100 * report.share:.1f} %"
    return calls, share, report.high, report.highest, str(report.proposed) if report.proposed else None
