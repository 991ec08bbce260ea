"""Several leases that were acquired together."""

from collections.abc import Sequence

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.locks.arguments import Seconds
from redis_kit.locks.errors import NotHeld
from redis_kit.locks.leases.lease import Lease, LeaseContext, extension


class LeaseGroup(LeaseContext):
    """Proof of holding several locks: ``leases`` has one of each, in the order in which they were named.

    ``group["name"]`` is the first with that name. Each has its own fence, since it guards something else. There is no
    common fence. If several fail, the first error is raised once all were released or extended.
    """

    def __init__(self, leases: Sequence[Lease]) -> None:
        self.leases = tuple(leases)

    def __repr__(self) -> str:
        return f"<LeaseGroup of {', '.join(repr(lease.source) for lease in self.leases)}>"

    def __getitem__(self, name: str) -> Lease:
        for lease in self.leases:
            if lease.name == name:
                return lease
        raise KeyError(name)

    @property
    def held(self) -> bool:
        """Tell whether all are surely live, without asking the server. See Lease.held."""
        return all(lease.held for lease in self.leases)

    @property
    def lost(self) -> bool:
        """Tell whether one is known to have ended before it was released."""
        return any(lease.lost for lease in self.leases)

    @property
    def over(self) -> bool:
        """Tell whether nothing is left to release. See Lease.over."""
        return all(lease.over for lease in self.leases)

    def _all(self) -> Sequence[Lease]:
        return self.leases

    def _release(self) -> Flow[None]:
        # Leases that were released one by one are not an error, unless all were.
        remaining = [lease for lease in self.leases if lease.lost or not lease.over] or self.leases
        flows = [lease.source.release_flow(lease) for lease in remaining]
        raise_first((yield from gather(flows, return_exceptions=True)))

    def _extend(self, additional_time: Seconds | None, replace_ttl: bool) -> Flow[bool]:
        changes = [extension(lease, additional_time, replace_ttl) for lease in self.leases]
        flows = [lease.source.extend_flow(lease, *change) for lease, change in zip(self.leases, changes, strict=True)]
        raise_first((yield from gather(flows, return_exceptions=True)))
        return True


def raise_first(results: Sequence[object]) -> None:
    """Raise one error among some results, with the others as its notes. An error that is not NotHeld comes first."""
    errors = [result for result in results if isinstance(result, Exception)]
    if not errors:
        return
    worst, *others = sorted(errors, key=lambda error: isinstance(error, NotHeld))
    for error in others:
        if error is not worst:
            worst.add_note(str(error))
    raise worst
