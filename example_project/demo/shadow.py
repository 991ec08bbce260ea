"""What a policy would have refused of a log, and which rate to propose: shadow mode at the log's own times."""

from collections.abc import Iterator
from pathlib import Path

from example_project.demo import accesslog
from redis_kit.core.web.client_address import grouped, parse
from redis_kit.throttling import Throttle, report
from redis_kit.throttling.statistics.offenders import offenders

RATE = "60/m"
SHOWN = 10  # addresses


class Judge:
    """A throttle that refuses nobody, and whose clock stands at whatever line of the log is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 0.0
        # Of the strategies the one that takes the rate at its word, in every stretch of a minute.
        self.throttle = Throttle("replay", RATE, strategy="sliding_log", shadow=True, clock=lambda: self.now)

    def read(self) -> None:
        """Let the throttle see the log in the order of its times. Lines without a request or a time are left out."""
        hits = [hit for hit in accesslog.read(self.path) if hit]
        timed = [(moment, hit.address) for hit in hits if (moment := accesslog.seconds(hit)) is not None]
        for self.now, address in sorted(timed):
            found = parse(address)
            self.throttle.hit(f"ip:{grouped(found) if found else address}")


def lines(path: Path) -> Iterator[str]:
    """Yield what the policy would have done to a log."""
    judge = Judge(path)
    judge.read()
    found = report(judge.throttle)
    calls, most = found.allowed + found.refused, offenders(judge.throttle, limit=SHOWN)
    yield f"\nA policy of {RATE} for each address, in shadow mode at the log's own times:"
    yield f"it would refuse {found.refused:,} of {calls:,} requests ({found.share:.2%})" + (
        ", most of them:" * bool(most)
    )
    for one in most:
        yield f"  {one.shown.removeprefix('ip:'):40} {one.refusals:6,}"
    usual = f"half {found.usual} or fewer, 99.9 % {found.high} or fewer, at most {found.highest}"
    yield f"Requests of an address in a minute: {usual}."
    yield f"Proposed rate: {found.proposed}"
