"""An identity whose every call asks the server, with the outcome of the server."""

from redis_kit.throttling import Throttle
from redis_kit.throttling.engine.decide import Call, Mode, decide


class Identity:
    """An identity whose refusals are not cached."""

    def __init__(self, rates, name="x", **options):
        self.throttle = Throttle(name, rates, **options)
        self.keys = self.throttle.keys("joe")
        self.state, self.standing, self.override, self.counts, self.offenders, self.rules, self.latest = self.keys

    def ask(self, cost=1, *, consume=True):
        """Return the outcome: the decision, the server's moment in microseconds, the strategy's figures."""
        (outcome,) = self.throttle.run_flow(
            decide([Call(self.throttle, "joe", cost)], Mode.COUNT if consume else Mode.LOOK)
        )
        return outcome
