"""The moments of all calls that passed."""

from tests.throttling.support.models.base import Model, Stand, period


class Log(Model):
    def reset(self):
        self.stamps = []

    def went_back(self, now):
        return bool(self.stamps) and self.stamps[-1] > now

    def seen(self, now):
        """Return the moments as they are at a moment; a clock that went back takes them back with it."""
        shift = max(0, self.stamps[-1] - now) if self.stamps else 0
        return [stamp - shift for stamp in self.stamps]

    def stands(self, now, cost):
        return [self._stand(self.seen(now), now, rate, cost) for rate in self.rates]

    def _stand(self, stamps, now, rate, cost):
        young = [stamp for stamp in stamps if stamp > now - period(rate)][-rate.limit :]
        over = len(young) + cost - rate.limit
        wait = young[over - 1] + period(rate) - now if over > 0 else 0
        reset = young[-1] + period(rate) - now if young else 0
        return Stand(over <= 0, rate.limit - len(young), wait, reset)

    def take(self, now, cost):
        self.stamps = self.seen(now) + [now] * cost

    def settle(self, now, stamp, cost, actual, before):
        self.stamps = self.stamps[-max(rate.limit for rate in self.rates) :]  # an older one is of no period any more
        for _ in range(cost - actual):
            if stamp in self.stamps:
                self.stamps.remove(stamp)
        if actual > cost:
            room = max(stand.remaining for stand in self.stands(now, 0))
            self.stamps += [max(now, *self.stamps[-1:])] * min(actual - cost, room)
