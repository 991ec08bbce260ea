"""Histories of a user who signs in, travels, makes days up and freezes days, beside a model of two sets of days.

``python -m tests.chaos signins.histories 10000`` runs 10,000 random histories on a server of its own. They last from
days to years, cross borders of years and 29 February, change between all zones, and have any hour as the start of the
day. If an answer differs from the model's, the program ends with the shortest such history.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unittest import mock
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from redis_kit.core import conf
from redis_kit.signins import days
from redis_kit.signins.errors import NoneLeft
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage
from tests.signins.people import numbers, saved
from tests.signins.support.model import DAY, Model

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
FAR = ["Pacific/Kiritimati", "Pacific/Apia", "Pacific/Pago_Pago", "Etc/GMT+12", "Europe/Berlin", "Asia/Kathmandu"]
STARTS = [
    datetime(2023, 12, 27, tzinfo=UTC),
    datetime(2024, 2, 25, tzinfo=UTC),
    datetime(2024, 3, 28, tzinfo=UTC),  # before clocks change in Europe
    datetime(2024, 10, 24, tzinfo=UTC),
    datetime(2011, 12, 27, tzinfo=UTC),  # Samoa has no 30 December
    datetime(2000, 1, 5, tzinfo=UTC),
]
met = Counter()


class Histories(RuleBasedStateMachine):
    """One user, whose answers are compared after each step."""

    @initialize(
        start=st.sampled_from(STARTS), hours=st.integers(0, 48), zone=st.sampled_from(FAR), first=st.integers(0, 23)
    )
    def begin(self, start, hours, zone, first):
        self.options = {
            "DAY_START_HOUR": first,
            "TIMEZONE": "zone",
            "MAKE_UPS": 2,
            "FREEZES": 2,
            "MILESTONES": [2, 3, 5],
        }
        self.time, self.user, self.model = (
            start,
            saved(next(numbers)),
            Model(make_ups=2, freezes=2, milestones=[2, 3, 5]),
        )
        self.user.zone = zone
        given = {**conf.configured(), "SIGNINS": self.options}
        conf.substitute(lambda _: given)
        self.pass_time(hours)
        met["histories"] += 1

    @rule(hours=st.sampled_from([1, 5, 12, 20, 24, 24, 24, 27, 30, 48, 24 * 40]))
    def pass_time(self, hours):
        self.time += timedelta(hours=hours, minutes=7)

    @rule(zone=st.sampled_from(FAR) | st.sampled_from(ZONES))
    def travel(self, zone):
        self.user.zone = zone

    @rule()
    def sign_in(self):
        self._signs_in_at(None, self.time)

    @rule()
    def sign_in_each_day_of_a_week(self):
        for _ in range(7):
            self.time += DAY
            self._signs_in_at(None, self.time)

    @rule(ago=st.integers(0, 24 * 8))
    def sign_in_at_an_earlier_time(self, ago):
        at = self.time - timedelta(hours=ago)
        if self._local(at) >= days.FIRST:
            self._signs_in_at(at, at)

    @rule(ago=st.integers(0, 12) | st.integers(300, 400))
    def sign_in_on_an_earlier_day(self, ago):
        day = max(self.today - DAY * ago, days.FIRST)
        with self._now():
            found = self.user.sign_in(day)
        assert tuple(found) == self.model.sign_in(day), found

    @rule(ago=st.integers(1, 7))
    def make_up(self, ago):
        self._covers("make_up", max(self.today - DAY * ago, days.FIRST))

    @rule(ahead=st.integers(-7, 7))
    def freeze(self, ahead):
        self._covers("freeze", max(self.today + DAY * ahead, days.FIRST))

    @invariant()
    def answers_are_those_of_the_model(self):
        if not hasattr(self, "user"):
            return
        model, today = self.model, self.today
        with self._now():
            summary = self.user.sign_in_summary()
            month = self.user.sign_in_calendar(today.year, today.month)
            week = self.user.sign_in_week(today - DAY * 3)
            counts = self.user.sign_in_count(), self.user.sign_in_count(today - DAY * 20, today)
            first = self.user.first_sign_in(today - DAY * 20)
        expected = (model.streak(today), model.longest, len(model.signed), min(model.signed, default=None))
        assert tuple(summary) == expected, (summary, expected)
        signed = {day.date for day in month.days if day.marked}
        covered = {day.date for day in month.days if day.made_up or day.frozen}
        for found, wanted in ((signed, model.signed), (covered, model.covered)):
            assert found == {day for day in wanted if (day.year, day.month) == (today.year, today.month)}
        assert week == [today - DAY * 3 + DAY * ahead in model.signed for ahead in range(7)]
        assert counts == (len(model.signed), sum(today - DAY * 20 <= day <= today for day in model.signed))
        assert first == min((day for day in model.signed if day >= today - DAY * 20), default=None)

    @property
    def today(self):
        return self._local(self.time)

    def _signs_in_at(self, at, moment):
        local = moment.astimezone(ZoneInfo(self.user.zone))
        zone = int(local.utcoffset().total_seconds()) - 3600 * self.options["DAY_START_HOUR"], self.user.zone
        with self._now():
            found = self.user.sign_in(at)
        frozen = len(self.model.covered)
        expected = self.model.sign_in(self._local(moment), zone, moment.replace(tzinfo=None))
        assert tuple(found) == expected, (found, expected)
        met["dates skipped by a change of zone"] += len(self.model.covered) > frozen
        met["sign-ins"] += 1

    def _covers(self, kind, day):
        method = {"make_up": self.user.make_up_sign_in, "freeze": self.user.freeze_sign_ins}[kind]
        expected = getattr(self.model, kind)(day)
        with self._now():
            try:
                found = tuple(method(day))
            except NoneLeft:
                found = None
        assert found == expected, (found, expected)
        met[f"{kind}{'' if expected else ', none left'}"] += 1

    def _local(self, moment):
        wall = moment.astimezone(ZoneInfo(self.user.zone)).replace(tzinfo=None)
        return (wall - timedelta(hours=self.options["DAY_START_HOUR"])).date()

    def teardown(self):
        conf.substitute(None)

    def _now(self):
        return mock.patch.object(days, "now", lambda where: self.time.astimezone(where))


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many histories there are."""

    number: int = 1000


def run(plan):
    """Run histories on a server of its own."""
    with stage(READ_TIMEOUT=10):  # the machine may be busy
        live(plan.number)
    figures = ", ".join(f"{count:,} {name}" for name, count in sorted(met.items()))
    return Outcome(figures, {"differences": []})


def live(number, *, phases=tuple(Phase)):
    """Run histories. Raises an error with the shortest one whose answer differs."""
    chosen = settings(max_examples=number, stateful_step_count=25, deadline=None, database=None, phases=phases)
    run_state_machine_as_test(Histories, settings=settings(chosen, suppress_health_check=list(HealthCheck)))
