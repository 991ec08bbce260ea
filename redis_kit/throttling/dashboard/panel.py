"""The dashboard's page about throttles."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.panels import (
    MOST_ROWS,
    Bars,
    Content,
    Field,
    Figure,
    Lines,
    Panel,
    Search,
    Table,
    Tile,
    action,
)
from redis_kit.throttling.dashboard import shadow
from redis_kit.throttling.dashboard.actions import Target
from redis_kit.throttling.values.masking import masked
from redis_kit.throttling.values.titles import DEFAULT

if TYPE_CHECKING:
    from redis_kit.throttling.engine.base import BaseThrottle
    from redis_kit.throttling.rules.storage import Rule
    from redis_kit.throttling.statistics.counters import ThrottleCalls
    from redis_kit.throttling.statistics.offenders import Offender
    from redis_kit.throttling.statistics.overview import ThrottleFigures

SHOWN = 30  # minutes
OFFENDERS = 20  # rows
CHANGE, UNMASK = "redis_kit.reset_throttles", "redis_kit.view_identities"
OF_IDENTITIES = ("reset", "ban", "exempt", "override")
TIME = _("Duration, such as 15m, 2h or 7d")
RATES = _("Rates and duration, such as 100/m for 2h")
REFUSED_MOST = _("Refused most often, in up to a day")
REFUSED_LATER = _("in 30 minutes; refusals from a process's memory are added at the identity's next call")
FAILURES = {"open": _("allow"), "closed": _("refuse"), "local": _("count in each process")}


def _named(value: str) -> str:
    return Target.parse(value).shown


def _effect_of(name: str) -> Callable[[str], str]:
    return lambda value: Target.parse(value).effect(name)


class ThrottlesPanel(Panel):
    """Allowed and refused calls, the most refused identities, and rules, with buttons to change them."""

    slug = "throttles"
    title = _("Throttles")

    def search(self) -> Search | None:
        """Return the look-up of one identity, for users with a permission that reveals as much."""
        from redis_kit.throttling.discovery import (
            built_throttles,  # here, so that start-up does not load the client library
        )

        throttles = built_throttles()
        if not throttles or not (self.viewer.may(CHANGE) or self.viewer.may(UNMASK)):
            return None
        names, connections = dict.fromkeys(throttle.name for throttle in throttles), _connections(throttles)
        fields = [Field("throttle", _("Throttle"), list(names))]
        if len(connections) > 1:
            fields.append(Field("connection", _("Connection"), connections))
        return Search(_("Look up"), (*fields, Field("identity", _("Identity, such as ip:203.0.113.7 or user:42"))))

    def content(self) -> Iterator[Content]:
        """Return the figures and the tables. Two round trips for each connection, and two for a look-up."""
        from redis_kit.throttling.discovery import built_throttles
        from redis_kit.throttling.statistics.overview import overview

        figures = overview(built_throttles()[:MOST_ROWS], minutes=SHOWN, offenders=OFFENDERS, rules=MOST_ROWS)
        by_minute = [_sum(same) for same in zip(*map(_true_minutes, figures), strict=True)]
        in_shadow = [row for row in figures if row.throttle.shadow]
        yield Figure(_("Throttles"), len(figures))
        yield Figure(_("Allowed"), sum(minute.allowed for minute in by_minute), _("in 30 minutes"))
        yield Figure(_("Refused"), sum(minute.refused for minute in by_minute), REFUSED_LATER)
        if in_shadow:
            would_be = sum(minute.refused for row in in_shadow for minute in row.minutes)
            yield Figure(_("Would be refused"), would_be, _("in 30 minutes, allowed by shadow mode"))
        yield Figure(_("Rules in force"), sum(row.rule_count for row in figures))
        yield from self._looked_up()
        yield Bars(_("Allowed per minute"), [(_clock(minute), minute.allowed) for minute in by_minute])
        yield Bars(_("Refused per minute"), [(_clock(minute), minute.refused) for minute in by_minute])
        yield _throttles(figures)
        yield self._offenders([row for row in figures if not row.throttle.shadow])
        if any(row.offenders for row in in_shadow):
            yield self._offenders(in_shadow, _("Would be refused most often (shadow mode), in up to a day"))
        yield self._rules(figures)
        reports = [(row, row.report) for row in figures if row.report]
        if reports:
            yield shadow.reports_table(reports)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the calls of the last hour on each connection. One round trip."""
        from redis_kit.throttling.dashboard import summary
        from redis_kit.throttling.discovery import built_throttles

        return summary.reads(built_throttles()[:MOST_ROWS])

    def tile(self, replies: Mapping[str, Any]) -> Tile:
        """Return the calls that throttles allowed and refused in the last hour; those in shadow mode are left out."""
        from redis_kit.throttling.dashboard import summary

        return summary.tile(replies)

    @action(_("Reset"), permission=CHANGE, asks=None, named=_named, confirm=True, effect=_effect_of("reset"))
    def reset(self, value: str) -> str:
        """Forget the calls of an identity and its automatic ban."""
        return Target.parse(value).reset()

    @action(_("Ban"), permission=CHANGE, asks=None, named=_named, wants=TIME, confirm=True, effect=_effect_of("ban"))
    def ban(self, value: str, time: str) -> str:
        """Refuse every call of an identity for some time."""
        return Target.parse(value).ban(time)

    @action(_("Exempt"), permission=CHANGE, asks=None, named=_named, wants=TIME, effect=_effect_of("exempt"))
    def exempt(self, value: str, time: str) -> str:
        """Allow every call of an identity for some time."""
        return Target.parse(value).exempt(time)

    @action(_("Override"), permission=CHANGE, asks=None, named=_named, wants=RATES, effect=_effect_of("override"))
    def override(self, value: str, rates: str) -> str:
        """Set other rates for an identity for some time."""
        return Target.parse(value).override(rates)

    @action(
        _("Override"),
        permission=CHANGE,
        asks=None,
        named=_named,
        wants=RATES,
        typed=True,
        effect=_effect_of("override_all"),
    )
    def override_all(self, value: str, rates: str) -> str:
        """Set other rates for all identities of a throttle for some time."""
        return Target.parse(value)._replace(identity_hash="").override(rates)

    @action(_("Lift"), permission=CHANGE, asks=None, named=_named, confirm=True, effect=_effect_of("lift"))
    def lift(self, value: str) -> str:
        """End a ban, an exemption or an override early."""
        return Target.parse(value).lift()

    def _looked_up(self) -> Iterator[Table]:
        fields = ("throttle", "connection", "identity")
        name, using, identity = (self.viewer.asked.get(field, "").strip() for field in fields)
        if not identity or self.search() is None:
            return
        from redis_kit.throttling.dashboard.lookup import look_up
        from redis_kit.throttling.discovery import built_throttles

        target = Target(name, using=using or _connections(built_throttles())[0])
        title = _("Looked up in %s") % target.shown
        try:
            standing = look_up(target.throttle, identity)
        except InvalidValue as error:
            yield Table(title, (), [], empty=str(error))
            return
        yield Table(
            title,
            (_("Identity"), _("Now"), _("Used"), _("Next call in"), _("Resets in"), _("Rule")),
            [(Lines((identity, standing.identity_hash)), *standing.cells, _rule(standing.rule))],
            actions=(*OF_IDENTITIES, "lift") if standing.rule else OF_IDENTITIES,
            values=[target._replace(identity_hash=standing.identity_hash).value],
        )

    def _offenders(self, figures: Sequence["ThrottleFigures"], title: Any = REFUSED_MOST) -> Table:
        most = [(row.throttle, offender) for row in figures for offender in row.offenders]
        shown = sorted(most, key=lambda pair: -pair[1].refusals)[:OFFENDERS]
        return Table(
            title,
            (_("Identity"), _("Throttle"), _("Refusals")),
            [(self._identity(offender), _name(throttle), offender.refusals) for throttle, offender in shown],
            empty=_("No call was refused."),
            actions=OF_IDENTITIES,
            values=[Target.of(throttle, offender.identity_hash).value for throttle, offender in shown],
        )

    def _rules(self, figures: Sequence["ThrottleFigures"]) -> Table:
        rules = [(row.throttle, rule) for row in figures for rule in row.rules]
        shown = sorted(rules, key=lambda pair: pair[1].until)[:MOST_ROWS]
        return Table(
            _("Rules in force, in the order in which they end"),
            (_("Identity"), _("Throttle"), _("Rule"), _("Ends")),
            [(self._identity(rule), _name(throttle), _kind(rule), rule.until) for throttle, rule in shown],
            empty=_("No rules are in force."),
            actions=("lift",),
            values=[Target.of(throttle, rule.identity_hash).value for throttle, rule in shown],
        )

    def _identity(self, row: "Offender | Rule") -> Any:
        if not row.identity_hash:
            return _("all identities")
        shown = row.shown if self.viewer.may(UNMASK) else masked(row.shown) if row.shown else ""
        return Lines((shown, row.identity_hash))


def _connections(throttles: Sequence["BaseThrottle"]) -> list[str]:
    """Return the connections that throttles use, the default connection first."""
    return sorted({throttle.using for throttle in throttles}, key=lambda using: (using != DEFAULT, using))


def _name(throttle: "BaseThrottle") -> str:
    return Target.of(throttle).shown


def _kind(rule: "Rule") -> Any:
    return {"ban": _("banned"), "exempt": _("exempt")}.get(rule.kind) or rule.rates


def _rule(rule: "Rule | None") -> Lines | None:
    return Lines((_kind(rule), rule.until)) if rule else None


def _throttles(figures: Sequence["ThrottleFigures"]) -> Table:
    columns = (
        _("Throttle"),
        _("Rates"),
        _("Strategy"),
        _("If Redis is unavailable"),
        _("Allowed per minute"),
        _("Refused per minute"),
        _("Override"),
    )
    return Table(
        _("Throttles"),
        columns,
        [_throttle(row) for row in figures],
        empty=_("No throttle has been built in this process."),
        actions=("override_all",),
        values=[Target.of(row.throttle).value if row.can_have_rules else "" for row in figures],
    )


def _throttle(figures: "ThrottleFigures") -> tuple[Any, ...]:
    throttle, minutes = figures.throttle, _true_minutes(figures)
    name, would_be = _name(throttle), sum(minute.refused for minute in figures.minutes) / len(minutes)
    shadow = _("shadow mode: refuses nothing, would refuse %s per minute") % f"{would_be:.1f}"
    shown = Lines((name, shadow)) if throttle.shadow else name
    rates = "; ".join(map(str, throttle.rates)) or _("no limit")
    policy = throttle.policy()
    return (
        shown,
        rates,
        throttle.strategy,
        FAILURES.get(policy, policy),
        _per_minute(sum(minute.allowed for minute in minutes), len(minutes)),
        _per_minute(sum(minute.refused for minute in minutes), len(minutes)),
        figures.override and figures.override.rates,
    )


def _per_minute(calls: int, minutes: int) -> float:
    """Return a rate, which is 0 only without calls: a call in 30 minutes is 0.03."""
    rate = calls / minutes
    return round(rate, 1) or round(rate, 2)


def _true_minutes(figures: "ThrottleFigures") -> list["ThrottleCalls"]:
    """Return what happened: a throttle in shadow mode allowed all calls."""
    if not figures.throttle.shadow:
        return figures.minutes
    return [minute._replace(allowed=minute.allowed + minute.refused, refused=0) for minute in figures.minutes]


def _sum(same: tuple["ThrottleCalls", ...]) -> "ThrottleCalls":
    return same[0]._replace(
        allowed=sum(minute.allowed for minute in same), refused=sum(minute.refused for minute in same)
    )


def _clock(minute: "ThrottleCalls") -> str:
    return timezone.localtime(minute.start).strftime("%H:%M")
