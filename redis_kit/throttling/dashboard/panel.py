"""The dashboard's page about throttles."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

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
    Pages,
    Panel,
    Range,
    Ranges,
    Search,
    Sparkline,
    StackedBars,
    Table,
    Tile,
    range_of,
    target_action,
)
from redis_kit.core.text import grouped
from redis_kit.throttling.dashboard import tables
from redis_kit.throttling.dashboard.actions import Target, look_up
from redis_kit.throttling.discovery import built_throttles
from redis_kit.throttling.engine.base import BaseThrottle, by_connection
from redis_kit.throttling.rules import LIMIT
from redis_kit.throttling.statistics import ThrottleCalls, counters
from redis_kit.throttling.statistics import overview as figures_of_all
from redis_kit.throttling.statistics.overview import ThrottleFigures
from redis_kit.throttling.values.titles import DEFAULT

SHOWN, HOUR = 30, 60  # minutes
CHANGE, UNMASK = "redis_kit.reset_throttles", "redis_kit.view_identities"
TIME = _("Duration, such as 15m, 2h or 7d")
RATES = _("Rates and duration, such as 100/m for 2h")
IDENTITY = _("Identity, such as ip:203.0.113.7 (empty: the throttle)")
button = partial(target_action, Target.parse, permission=CHANGE)
LIMITS = {"minutes": SHOWN, "offenders": tables.OFFENDERS, "rules": MOST_ROWS}


class ThrottlesPanel(Panel):
    """Allowed and refused calls, the most refused identities, and rules, with buttons to change them."""

    slug = "throttles"
    title = tables.THROTTLES

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
        figures, calls = _read_one(throttle, chosen, **{**LIMITS, "rules": min(number * MOST_ROWS, LIMIT)})
        yield from _figures_of(figures, calls, chosen)
        yield tables.throttles([figures], title)
        yield from _chart_of(figures, calls, chosen, target.asked)
        refused = tables.SHADOW_REFUSED_MOST if throttle.shadow else tables.REFUSED_MOST
        yield tables.offenders([figures], refused, unmasked=self._unmasked)
        page = figures._replace(rules=figures.rules[(number - 1) * MOST_ROWS :])
        yield tables.rules([page], unmasked=self._unmasked)
        yield from Pages.of(self.slug, number, figures.rule_count, {**target.asked, "range": str(chosen.hours)})
        if figures.report:
            yield tables.reports_table([(figures, figures.report)])

    def _all(self) -> Iterator[Content]:
        figures = figures_of_all.overview(built_throttles()[:MOST_ROWS], **LIMITS)
        by_minute = [_sum(same) for same in zip(*map(tables.true_minutes, figures), strict=True)]
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
        yield tables.throttles(figures)
        yield tables.offenders([row for row in figures if not row.throttle.shadow], unmasked=self._unmasked)
        if any(row.offenders for row in in_shadow):
            yield tables.offenders(in_shadow, tables.SHADOW_REFUSED_MOST, unmasked=self._unmasked)
        yield tables.rules(figures, unmasked=self._unmasked)
        reports = [(row, row.report) for row in figures if row.report]
        if reports:
            yield tables.reports_table(reports)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the calls of the last hour on each connection. One round trip."""
        grouped = by_connection(built_throttles()[:MOST_ROWS])
        return {using: counters.read(throttles, HOUR) for using, throttles in grouped.items()}

    def tile(self, replies: Mapping[str, Any]) -> Tile:
        """Return the calls that throttles allowed and refused in the last hour."""
        throttles = [tables.true_calls(*each) for calls in replies.values() for each in calls.items()]
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
            standing = look_up(target.throttle, identity)
        except InvalidValue as error:
            yield Table(title, (), [], empty=str(error))
            return
        yield Table(
            title,
            (_("Identity"), _("Now"), _("Used"), _("Next call in"), _("Resets in"), _("Rule")),
            [(Lines((identity, standing.identity_hash)), *standing.cells, tables.rule(standing.rule))],
            actions=(*tables.OF_IDENTITIES, "lift") if standing.rule else tables.OF_IDENTITIES,
            values=[target._replace(identity_hash=standing.identity_hash).value],
        )

    @property
    def _unmasked(self) -> bool:
        return self.viewer.may(UNMASK)

    def _may_look_up(self) -> bool:
        return self.viewer.may(CHANGE) or self.viewer.may(UNMASK)

    def _target(self) -> Target:
        first, *_others = _connections(built_throttles()) or [DEFAULT]
        return Target(self.asked("throttle"), using=self.asked("connection") or first)


def _connections(throttles: Sequence[BaseThrottle]) -> list[str]:
    """Return the connections that throttles use, the default connection first."""
    return sorted({throttle.using for throttle in throttles}, key=lambda using: (using != DEFAULT, using))


def _sum(same: tuple[ThrottleCalls, ...]) -> ThrottleCalls:
    return same[0]._replace(
        allowed=sum(minute.allowed for minute in same), refused=sum(minute.refused for minute in same)
    )


def _clock(minute: ThrottleCalls) -> str:
    return timezone.localtime(minute.start).strftime("%H:%M")


def _read_one(throttle: BaseThrottle, chosen: Range, **limits: int) -> tuple[ThrottleFigures, Sequence[ThrottleCalls]]:
    """Return the figures of a throttle, for which overview() explains the limits, and its calls. Two round trips."""
    parts: list[Flow[Any]] = [figures_of_all.read(throttle, **limits), _read_calls(throttle, chosen)]
    figures, calls = throttle.run_flow(gather(parts))
    return figures, calls


def _read_calls(throttle: BaseThrottle, chosen: Range) -> Flow[Sequence[ThrottleCalls]]:
    if chosen.by_hour:
        return (yield from counters.read_hours(throttle, chosen.hours))
    return (yield from counters.read([throttle], chosen.minutes))[throttle]


def _figures_of(of_throttle: ThrottleFigures, calls: Sequence[ThrottleCalls], chosen: Range) -> Iterator[Figure]:
    """Yield the calls in the range, and the number of rules."""
    yield Figure(_("Allowed"), sum(each.allowed for each in calls), chosen.label)
    yield Figure(_refused_label(of_throttle), sum(each.refused for each in calls), chosen.label)
    yield Figure(_("Rules in force"), of_throttle.rule_count)


def _chart_of(
    of_throttle: ThrottleFigures, calls: Sequence[ThrottleCalls], chosen: Range, asked: Mapping[str, str]
) -> Iterator[Ranges | StackedBars]:
    """Yield the choice of a range, and the calls in it. ``asked`` is the search for the throttle."""
    yield chosen.choice("throttles", asked)
    last = chosen.last_minute(calls[-1].start)
    allowed = [sum(bar) for bar in chosen.bars([each.allowed for each in calls], last)]
    refused = [sum(bar) for bar in chosen.bars([each.refused for each in calls], last)]
    parts = [(_("Allowed"), allowed), (_refused_label(of_throttle), refused)]
    yield StackedBars(_("Calls"), chosen.labels(last), parts)


def _refused_label(of_throttle: ThrottleFigures) -> Any:
    return _("Would be refused") if of_throttle.throttle.shadow else _("Refused")
