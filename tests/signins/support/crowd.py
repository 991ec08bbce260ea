"""Many users with random days, stored by the kit and as sets."""

import random
from datetime import timedelta

from redis_kit.signins.days import today
from tests.signins.people import saved


class Crowd:
    """Users 1 to ``size``, who sign in on some of the last ``length`` days; ``days`` has a set of days for each."""

    def __init__(self, size, length, *, seed=7):
        chance = random.Random(seed)
        self.last = today()
        self.first = self.last - timedelta(length - 1)
        self.days = {}
        for number in range(1, size + 1):
            begin, diligence = chance.randrange(length), chance.random()
            chosen = {begin} | {at for at in range(begin, length) if chance.random() < diligence}
            self.days[number] = {self.first + timedelta(at) for at in chosen}

    def sign_in(self):
        """Store the days through the kit, for each user in a random order."""
        chance = random.Random(3)
        for number, days in self.days.items():
            for day in chance.sample(sorted(days), len(days)):
                saved(number).sign_in(day)
        return self

    def on(self, start, end=None):
        """Return the users who signed in on a day, or from start to end."""
        return {number for number, days in self.days.items() if any(start <= day <= (end or start) for day in days)}

    def first_on(self, start, end=None):
        """Return the users whose first sign-in was then."""
        return {number for number, days in self.days.items() if start <= min(days) <= (end or start)}

    def streak(self, number, day):
        """Return the number of days in a row up to a day, or to the day before."""
        days = self.days[number]
        last = day if day in days else day - timedelta(1)
        length = 0
        while last - timedelta(length) in days:
            length += 1
        return length
