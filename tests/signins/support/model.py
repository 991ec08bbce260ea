"""A model of a user's sign-ins: two sets of days, and nothing that is worked out before it is asked for."""

from datetime import date, datetime, timedelta

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)


class Model:
    """The days with a sign-in, and the covered ones: made up with a sign-in, frozen without."""

    def __init__(self, *, make_ups=3, freezes=3, milestones=(7, 30, 100, 365)):
        self.signed, self.covered, self.zone = set(), set(), None
        self.make_ups, self.freezes, self.milestones = make_ups, freezes, milestones

    def runs(self):
        """Return the days of each streak, without its frozen days, by the last day that belongs to it."""
        runs, run, previous = {}, [], None
        for day in [*sorted(self.signed | self.covered), None]:
            if previous and day != previous + DAY:
                runs[previous] = [one for one in run if one in self.signed]
                run = []
            run.append(day)
            previous = day
        return {last: days for last, days in runs.items() if days}

    def around(self, day):
        """Return the number of sign-ins of the streak around a day."""
        first = last = day
        while first - DAY in self.signed | self.covered:
            first -= DAY
        while last + DAY in self.signed | self.covered:
            last += DAY
        return sum(first <= one <= last for one in self.signed)

    @property
    def longest(self):
        return max(map(len, self.runs().values()), default=0)

    def streak(self, today):
        last, days = max(self.runs().items(), default=(date.min, []))
        return len(days) if last >= today - DAY else 0

    def sign_in(self, day, zone=None, now=None):
        """Sign in on a day; ``zone`` is the offset and name of the zone, ``now`` the time in UTC, if it was a time."""
        new, last = day not in self.signed, max(self.runs(), default=None)
        before = self.longest
        if new and zone and self.zone and self.zone[1] != zone[1] and last and day > last + DAY:
            in_old_zone = (EPOCH + timedelta(seconds=(now - EPOCH).total_seconds() // 1 + self.zone[0])).date()
            if in_old_zone <= last + DAY:
                self.covered |= {last + DAY * ahead for ahead in range(1, (day - last).days)}
        if new:
            self.signed.add(day)
            self.covered.discard(day)
            self.zone = zone or self.zone
        return self._result(new, day, before)

    def make_up(self, day):
        """Return None if none is left."""
        new, before = day not in self.signed, self.longest
        if new and self._used(day, made_up=True) >= self.make_ups:
            return None
        self.signed.add(day)
        self.covered |= {day} if new else set()
        return self._result(new, day, before)

    def freeze(self, day):
        """Return None if none is left."""
        new, before = day not in self.signed | self.covered, self.longest
        if new and self._used(day, made_up=False) >= self.freezes:
            return None
        self.covered |= {day} if new else set()
        return self._result(new, day, before)

    def _used(self, day, *, made_up):
        month = [one for one in self.covered if (one.year, one.month) == (day.year, day.month)]
        return sum((one in self.signed) == made_up for one in month)

    def _result(self, new, day, before):
        reached = [days for days in self.milestones if before < days <= self.longest]
        return (new, self.around(day), self.longest, len(self.signed), reached if new else [], day)
