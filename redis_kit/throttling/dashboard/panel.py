"""The dashboard's page about throttles."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    MOST_ROWS,
    Action,
    Bars,
    Content,
    Effect,
    Field,
    Figure,
    Lines,
    Link,
    Pages,
    Panel,
    Range,
    Search,
    Sparkline,
    StackedBars,
    Table,
    Tile,
    range_of,
    target_action,
)
from redis_kit.core.text import duration, grouped
from redis_kit.throttling.dashboard.actions import Target, checked_identity, standing
from redis_kit.throttling.discovery import DEFAULT, built_throttles
from redis_kit.throttling.engine.base import BaseThrottle, asking, by_connection, read_together
from redis_kit.throttling.identity import masked
from redis_kit.throttling.rules import LIMIT, Rule, can_have_rules, listed, of_identities
from redis_kit.throttling.statistics import (
    Offender,
    ShadowReport,
    ThrottleCalls,
    read_hours,
    read_minutes,
    read_offenders,
    read_report,
)

SHOWN, HOUR = 30, 60  # minutes
OFFENDERS = 20  # rows
CHANGE, UNMASK = "redis_kit.reset_throttles", "redis_kit.view_identities"
TIME = _("Duration, such as 15m, 2h or 7d")
RATES = _("Rates and duration, such as 100/m for 2h")
IDENTITY = _("Identity, such as ip:203.0.113.7 (empty: the throttle)")
THROTTLES = _("Throttles")
REFUSED_MOST = _("Refused most often, in up to a day")
SHADOW_REFUSED_MOST = _("Would be refused most often (shadow mode), in up to a day")
OF_IDENTITIES = ("reset", "ban", "exempt", "override")
FAILURES = {"open": _("allow"), "closed": _("refuse"), "local": _("count in each process")}
button = partial(target_action, Target.parse, permission=CHANGE)


class ThrottleFigures(NamedTuple):
    """The figures of a throttle: calls by minute, most refused identities and their rules, some and the number of all.

    ``report`` is the report of shadow mode.
    """

    throttle: BaseThrottle
    minutes: list[ThrottleCalls]
    offenders: list[Offender]
    offender_rules: list[Rule]
    rules: list[Rule]
    rule_count: int
    report: ShadowReport | None


class ThrottlesPanel(Panel):
    """Allowed and refused calls, the most refused identities, and rules, with buttons to change them."""

    slug = "throttles"
    title = THROTTLES

    def search(self) -> Search | None:
        """Return the look-up of a throttle, and of its identities for users with a permission that reveals as much."""
        throttles = built_throttles()
        if not throttles:
            return None
        names, connections = dict.fromkeys(throttle.name for throttle in throttles), _connections(throttles)
        fields = [Field("throttle", _("Throttle"), list(names))]
        if len(connections) > 1:
            fields.append(Field("connection", _("Connection"), connections))
        if self._may_look_up():
            fields.append(Field("identity", IDENTITY, optional=True))
        return Search(_("Look up"), fields)

    def content(self) -> Iterator[Content]:
        """Yield the throttle that the viewer chose, else all: figures, charts and tables.

        Two round trips for each connection, and two for the look-up of an identity.
        """
        if self.asked("throttle") and not self.asked("identity"):
            yield from self._chosen()
        else:
            yield from self._all()

    def _chosen(self) -> Iterator[Content]:
        target = self._target()
        title = _("Throttle %s") % target.shown
        try:
            throttle = target.throttle
        except InvalidValue as error:
            yield Table(title, (), [], empty=str(error))
            yield from self._all()
            return
        chosen, number = range_of(self.asked("range")), self.viewer.page
        parts: list[Flow[Any]] = [_read(throttle, min(number * MOST_ROWS, LIMIT)), _read_calls(throttle, chosen)]
        figures, calls = throttle.run_flow(gather(parts))
        allowed, refused = [each.allowed for each in calls], [each.refused for each in calls]
        refused_title = _("Would be refused") if throttle.shadow else _("Refused")
        yield Figure(_("Allowed"), sum(allowed), chosen.label)
        yield Figure(refused_title, sum(refused), chosen.label)
        yield Figure(_("Rules in force"), figures.rule_count)
        yield _throttles_table([figures], title)
        yield chosen.choice(self.slug, target.asked)
        last = chosen.last_minute(calls[-1].start)
        bars = [(_("Allowed"), chosen.bars(allowed, last)), (refused_title, chosen.bars(refused, last))]
        yield StackedBars(
            _("Calls"), chosen.labels(last), [(name, [sum(bar) for bar in numbers]) for name, numbers in bars]
        )
        yield self._offenders_table([figures], SHADOW_REFUSED_MOST if throttle.shadow else REFUSED_MOST)
        yield self._rules_table([figures._replace(rules=figures.rules[(number - 1) * MOST_ROWS :])])
        yield from Pages.of(self.slug, number, figures.rule_count, {**target.asked, "range": str(chosen.hours)})
        yield from _reports_tables([figures])

    def _all(self) -> Iterator[Content]:
        figures = overview(built_throttles()[:MOST_ROWS])
        by_minute = [_sum(same) for same in zip(*map(_true_minutes, figures), strict=True)]
        in_shadow = [row for row in figures if row.throttle.shadow]
        yield Figure(_("Throttles"), len(figures))
        yield Figure(_("Allowed"), sum(minute.allowed for minute in by_minute), _("in 30 minutes"))
        yield Figure(_("Refused"), sum(minute.refused for minute in by_minute), _("in 30 minutes"))
        if in_shadow:
            would_be = sum(minute.refused for row in in_shadow for minute in row.minutes)
            yield Figure(_("Would be refused"), would_be, _("in 30 minutes, allowed by shadow mode"))
        yield Figure(_("Rules in force"), sum(row.rule_count for row in figures))
        yield from self._looked_up()
        yield Bars(_("Allowed per minute"), [(_clock(minute), minute.allowed) for minute in by_minute])
        yield Bars(_("Refused per minute"), [(_clock(minute), minute.refused) for minute in by_minute])
        yield _throttles_table(figures, THROTTLES)
        yield self._offenders_table([row for row in figures if not row.throttle.shadow], REFUSED_MOST)
        if any(row.offenders for row in in_shadow):
            yield self._offenders_table(in_shadow, SHADOW_REFUSED_MOST)
        yield self._rules_table(figures)
        yield from _reports_tables(figures)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the calls of the last hour on each connection. One round trip."""
        grouped = by_connection(built_throttles()[:MOST_ROWS])
        return {using: read_minutes(throttles, HOUR) for using, throttles in grouped.items()}

    def tile(self, replies: Mapping[str, Any]) -> Tile:
        """Return the calls that throttles allowed and refused in the last hour."""
        throttles = [_true_calls(*each) for calls in replies.values() for each in calls.items()]
        allowed = sum(minute.allowed for minutes in throttles for minute in minutes)
        refused = [sum(minute.refused for minute in same) for same in zip(*throttles, strict=True)]
        text = ngettext("%(count)s call refused in an hour", "%(count)s calls refused in an hour", sum(refused))
        figures = [Figure(_("Allowed in an hour"), allowed), Figure(_("Refused in an hour"), sum(refused))]
        return Tile(figures, Sparkline(text % {"count": grouped(sum(refused))}, refused) if throttles else None)

    def effect_of(self, action: Action, value: str) -> Any:
        """Return whose calls an action concerns, as lists show it to this viewer, and what it will do."""
        sentence = Target.parse(value).identity_sentence(unmasked=self._unmasked)
        effect = super().effect_of(action, value)
        return effect._replace(text=f"{sentence}{effect.text}") if isinstance(effect, Effect) else f"{sentence}{effect}"

    reset = button(Target.reset, _("Reset"), confirm=True, explained="reset", harmless=True)
    ban = button(Target.ban, _("Ban"), wants=TIME, confirm=True, explained="ban")
    exempt = button(Target.exempt, _("Exempt"), wants=TIME, explained="exempt")
    override = button(Target.override, _("Override"), wants=RATES, explained="override")
    override_all = button(Target.override_all, _("Override"), wants=RATES, typed=True, explained="override_all")
    lift = button(Target.lift, _("Lift"), confirm=True, explained="lift")

    def _looked_up(self) -> Iterator[Table]:
        identity = self.asked("identity")
        if not identity or not self._may_look_up():
            return
        target = self._target()
        title = _("Looked up in %s") % target.shown
        try:
            throttle = target.throttle
            identity_hash = checked_identity(throttle, identity)
            rule, found = throttle.rules.of(identity), standing(throttle.peek(identity))
        except InvalidValue as error:
            yield Table(title, (), [], empty=str(error))
            return
        yield Table(
            title,
            (_("Identity"), _("Now"), _("Used"), _("Next call in"), _("Resets in"), _("Rule")),
            [(Lines((identity, identity_hash)), *found, _rule(rule))],
            actions=(*OF_IDENTITIES, "lift") if rule else OF_IDENTITIES,
            values=[target._replace(identity_hash=identity_hash).value],
        )

    @property
    def _unmasked(self) -> bool:
        return self.viewer.may(UNMASK)

    def _may_look_up(self) -> bool:
        return self.viewer.may(CHANGE) or self.viewer.may(UNMASK)

    def _target(self) -> Target:
        first, *_others = _connections(built_throttles()) or [DEFAULT]
        return Target(self.asked("throttle"), using=self.asked("connection") or first)

    def _offenders_table(self, figures: Sequence[ThrottleFigures], title: Any) -> Table:
        most = [(row.throttle, offender) for row in figures for offender in row.offenders]
        shown = sorted(most, key=lambda pair: -pair[1].refusals)[:OFFENDERS]
        in_force = {(row.throttle, each.identity_hash): each for row in figures for each in row.offender_rules}
        return Table(
            title,
            (_("Identity"), _("Throttle"), _("Refusals"), _("Rule")),
            [
                (
                    self._identity(offender),
                    Target.of(throttle).shown,
                    offender.refusals,
                    _rule(in_force.get((throttle, offender.identity_hash))),
                )
                for throttle, offender in shown
            ],
            empty=_("No call was refused."),
            actions=OF_IDENTITIES,
            values=[Target.of(throttle, offender.identity_hash).value for throttle, offender in shown],
        )

    def _rules_table(self, figures: Sequence[ThrottleFigures]) -> Table:
        in_force = [(row.throttle, rule) for row in figures for rule in row.rules]
        shown = sorted(in_force, key=lambda pair: pair[1].until)[:MOST_ROWS]
        return Table(
            _("Rules in force, in the order in which they end"),
            (_("Identity"), _("Throttle"), _("Rule"), _("Ends")),
            [(self._identity(rule), Target.of(throttle).shown, _kind(rule), rule.until) for throttle, rule in shown],
            empty=_("No rules are in force."),
            actions=("lift",),
            values=[Target.of(throttle, rule.identity_hash).value for throttle, rule in shown],
        )

    def _identity(self, row: Offender | Rule) -> Any:
        if not row.identity_hash:
            return _("all identities")
        return Lines((row.shown if self._unmasked or not row.shown else masked(row.shown), row.identity_hash))


@asking
def overview(throttles: Sequence[BaseThrottle]) -> Flow[list[ThrottleFigures]]:
    """Return the figures of throttles. Two round trips for each connection."""

    def together(of_connection: Sequence[BaseThrottle]) -> Flow[dict[BaseThrottle, ThrottleFigures]]:
        figures = yield from gather([_read(throttle, MOST_ROWS) for throttle in of_connection])
        return {each.throttle: each for each in figures}

    return list((yield from read_together(throttles, together)).values())


def _read(throttle: BaseThrottle, most_rules: int) -> Flow[ThrottleFigures]:
    parts: list[Flow[Any]] = [
        read_minutes([throttle], SHOWN),
        _read_offenders(throttle),
        listed(throttle, most_rules),
        read_report(throttle),
    ]
    by_minute, (offenders, their_rules), (count, rules), report = yield from gather(parts)
    return ThrottleFigures(throttle, by_minute[throttle], offenders, their_rules, rules, count, report)


def _read_offenders(throttle: BaseThrottle) -> Flow[tuple[list[Offender], list[Rule]]]:
    most = yield from read_offenders(throttle, OFFENDERS)
    hashes = [each.identity_hash for each in most]
    return most, (yield from of_identities(throttle, hashes)) if hashes else []


def _read_calls(throttle: BaseThrottle, chosen: Range) -> Flow[Sequence[ThrottleCalls]]:
    if chosen.by_hour:
        return (yield from read_hours(throttle, chosen.hours))
    return (yield from read_minutes([throttle], chosen.minutes))[throttle]


def _connections(throttles: Sequence[BaseThrottle]) -> list[str]:
    """Return the connections that throttles use, the default connection first."""
    return sorted({throttle.using for throttle in throttles}, key=lambda using: (using != DEFAULT, using))


def _sum(same: tuple[ThrottleCalls, ...]) -> ThrottleCalls:
    return ThrottleCalls(same[0].start, sum(minute.allowed for minute in same), sum(minute.refused for minute in same))


def _clock(minute: ThrottleCalls) -> str:
    return timezone.localtime(minute.start).strftime("%H:%M")


def _true_minutes(figures: ThrottleFigures) -> Sequence[ThrottleCalls]:
    return _true_calls(figures.throttle, figures.minutes)


def _true_calls(throttle: BaseThrottle, calls: Sequence[ThrottleCalls]) -> Sequence[ThrottleCalls]:
    """Return the true decisions: a throttle in shadow mode allowed all calls."""
    if not throttle.shadow:
        return calls
    return [each._replace(allowed=each.allowed + each.refused, refused=0) for each in calls]


def _throttles_table(figures: Sequence[ThrottleFigures], title: Any) -> Table:
    return Table.of(
        title,
        figures,
        [
            (_("Throttle"), _linked),
            (_("Rates"), _rates),
            (_("Strategy"), lambda row: row.throttle.strategy),
            (_("If Redis is unavailable"), lambda row: FAILURES.get(row.throttle.policy(), row.throttle.policy())),
            (_("Allowed per minute"), lambda row: _per_minute([each.allowed for each in _true_minutes(row)])),
            (_("Refused per minute"), lambda row: _per_minute([each.refused for each in _true_minutes(row)])),
            (_("Override"), lambda row: next((rule.rates for rule in row.rules if not rule.identity_hash), None)),
        ],
        empty=_("No throttle has been built in this process."),
        actions=("override_all",),
        values=[Target.of(row.throttle).value if can_have_rules(row.throttle) else "" for row in figures],
    )


def _linked(figures: ThrottleFigures) -> Any:
    target = Target.of(figures.throttle)
    name = Link(target.shown, "throttles", target.asked)
    if not figures.throttle.shadow:
        return name
    would_be = sum(minute.refused for minute in figures.minutes) / len(figures.minutes)
    return Lines((name, _("shadow mode: refuses nothing, would refuse %s per minute") % f"{would_be:.1f}"))


def _rates(figures: ThrottleFigures) -> Any:
    rates, ban = "; ".join(map(str, figures.throttle.rates)) or _("no limit"), figures.throttle.ban
    if not ban:
        return rates
    bans = _("bans after %(count)s refusals within %(within)s, for %(lengths)s") % {
        "count": grouped(ban.after),
        "within": duration(ban.within),
        "lengths": ", ".join(map(duration, ban.lengths)),
    }
    return Lines((rates, bans))


def _rule(in_force: Rule | None) -> Any:
    return in_force and Lines((_kind(in_force), in_force.until))


def _kind(rule: Rule) -> Any:
    return {"ban": _("banned"), "exempt": _("exempt")}.get(rule.kind) or rule.rates


def _per_minute(calls: Sequence[int]) -> float:
    """Return a rate, which is 0 only without calls: a call in 30 minutes is 0.03."""
    rate = sum(calls) / len(calls)
    return round(rate, 1) or round(rate, 2)


def _reports_tables(figures: Sequence[ThrottleFigures]) -> Iterator[Table]:
    reports = [(row.throttle, row.report) for row in figures if row.report]
    if reports:
        yield Table(
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
            [
                (
                    Target.of(throttle).shown,
                    str(report.rate),
                    report.allowed + report.refused,
                    f"{100 * report.share:.1f} %",
                    report.high,
                    report.highest,
                    str(report.proposed) if report.proposed else None,
                )
                for throttle, report in reports
            ],
        )
