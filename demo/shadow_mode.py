"""The calls of a log that a policy would refuse, and the rate to propose: shadow mode at the log's own times."""

from collections.abc import Iterator
from pathlib import Path

from demo import access_log
from redis_kit.core.web.client_address import grouped, parse
from redis_kit.throttling import Throttle, shadow_report

RATE = "60/m"
SHOWN = 10  # addresses


class ShadowedLog:
    """A throttle in shadow mode, with a clock that shows the time of the current line of a log."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 0.0
        # The only strategy that is exact in every period of a minute.
        self.throttle = Throttle("replay", RATE, strategy="sliding_log", shadow=True, clock=lambda: self.now)

    def read(self) -> None:
        """Hit the throttle for each request, in the order of time. Lines without a request or a time are left out."""
        hits = [hit for hit in access_log.read(self.path) if hit]
        timed = [(moment, hit.address) for hit in hits if (moment := access_log.seconds(hit)) is not None]
        for self.now, address in sorted(timed):
            ip = parse(address)
            self.throttle.hit(f"ip:{grouped(ip) if ip else address}")


def lines(path: Path) -> Iterator[str]:
    """Yield the report of the policy on a log."""
    shadowed = ShadowedLog(path)
    shadowed.read()
    result = shadow_report(shadowed.throttle)
    calls, most = result.allowed + result.refused, shadowed.throttle.offenders(SHOWN)
    yield f"\nA policy of {RATE} for each address, in shadow mode at the log's own times:"
    yield f"it would refuse {result.refused:,} of {calls:,} requests ({result.share:.2%})" + (
        ", most of them:" * bool(most)
    )
    for offender in most:
        yield f"  {offender.shown.removeprefix('ip:'):40} {offender.refusals:6,}"
    usual = f"half {result.usual} or fewer, 99.9 % {result.high} or fewer, at most {result.highest}"
    yield f"Requests of an address in a minute: {usual}."
    yield f"Proposed rate: {result.proposed}"
