"""A crowd of users with random days, stored as the kit and bitmapist store them, and as sets."""

import random
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import User

from redis_kit.core.keys import BUCKETS
from redis_kit.signins import keys
from redis_kit.signins.activity import Activity
from redis_kit.signins.segments import Segment


class Data:
    """Sets of user ids by day: those who signed in, and those who did for the first time."""

    def __init__(self, users: int, days: int, first: date, chance: random.Random) -> None:
        self.days = [first + timedelta(at) for at in range(days)]
        self.size, self.activity = users, Activity(User)
        self.on: dict[date, set[int]] = {}
        self.first_on: dict[date, set[int]] = {}
        seen: set[int] = set()
        for day in self.days:
            active = set(chance.sample(range(users), users // 5))
            # Half of the users come from the first month on, so that cohorts are of many days.
            self.on[day] = {user for user in active if user in seen or user % days <= (day - first).days}
            self.first_on[day] = self.on[day] - seen
            seen |= self.on[day]

    def store(self, client: Any) -> None:
        """Store it as the kit does: user n is in bucket n % 16, at the place n // 16."""
        pipe = client.pipeline(transaction=False)
        for day in self.days:
            for users, key in ((self.on[day], keys.active), (self.first_on[day], keys.first)):
                for number, bucket in enumerate(BUCKETS):
                    places = [user // 16 for user in users if user % 16 == number]
                    pipe.set(key(keys.tag("auth.user", bucket), day), bitmap(places, self.size // 16 + 1))
        for number, bucket in enumerate(BUCKETS):
            ids = range(number, self.size, 16)
            pipe.rpush(keys.members(keys.tag("auth.user", bucket)), *ids)
        pipe.execute()

    def store_for_bitmapist(self, client: Any) -> None:
        """Store it as bitmapist does, by the id of the user."""
        for day in self.days:
            for event, users in (("active", self.on[day]), ("new", self.first_on[day])):
                client.set(f"trackist_{event}_{day.year}-{day.month}-{day.day}", bitmap(users, self.size))

    def active(self, window: int) -> list[int]:
        """Return the number of different users in as many days as the window, up to each day, by sets."""
        ends = range(1, len(self.days) + 1)
        return [len(set().union(*(self.on[day] for day in self.days[max(0, end - window) : end]))) for end in ends]

    def grid(self, *, rolling: bool) -> list[tuple[int, list[int]]]:
        """Return the retention grid by sets."""
        active = [self.on[day] for day in self.days]
        if rolling:
            for at in range(len(active) - 2, -1, -1):
                active[at] = active[at] | active[at + 1]
        cohorts = [self.first_on[day] for day in self.days]
        return [(len(users), [len(users & later) for later in active[at:]]) for at, users in enumerate(cohorts)]

    def questions(self) -> dict[str, tuple[Segment, set[int]]]:
        """Return funnels as segments, with the answers by sets."""
        one, two, three = self.days[30], self.days[31], self.days[37]
        on, first_on = self.activity.on, self.activity.first_on
        return {
            "new, and back on the next day": (first_on(one) & on(two), self.first_on[one] & self.on[two]),
            "here on two days": (on(one) & on(two), self.on[one] & self.on[two]),
            "here on one of two days": (on(one) | on(two), self.on[one] | self.on[two]),
            "new, and not back after a week": (first_on(one) & ~on(three), self.first_on[one] - self.on[three]),
        }


def bitmap(places: Any, size: int) -> bytes:
    """Return the bits of these places, as SETBIT sets them."""
    bits = bytearray(size // 8 + 1)
    for place in places:
        bits[place // 8] |= 0x80 >> place % 8
    return bytes(bits)
