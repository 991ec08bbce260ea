"""The lock or semaphore that a lease belongs to, as leases and their renewal see it."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall

LeaseT = TypeVar("LeaseT", contravariant=True)


class ExtendMode(StrEnum):
    """How a lease is extended. The values are those that the scripts take."""

    ADD = "0"  # by a time
    REPLACE = "1"  # so that a time is left from now on
    AT_LEAST = "2"  # so that at least a time is left from now on


class LeaseSource(Protocol[LeaseT]):
    """A lock or semaphore: its name, its options with times in seconds, and what changes a lease of it."""

    name: str
    using: str
    member: str
    timeout: float | None
    blocking: bool
    blocking_timeout: float | None
    renew: bool
    max_hold: float | None
    on_lost: Callable[[Any], Any] | None
    on_commit: bool
    database: str
    reentrant: bool

    @property
    def lease_timeout(self) -> float:
        """Return the timeout of a lease, in seconds: its own, or that of the settings."""

    def tag(self) -> str:
        """Return the tag of its bucket."""

    def release(self, lease: LeaseT | None = None) -> None:
        """Release a lease."""

    async def arelease(self, lease: LeaseT | None = None) -> None:
        """See release()."""

    def release_flow(self, lease: LeaseT | None) -> Flow[None]:
        """Release a lease, unless its holder acquired it more than once."""

    def extend_flow(self, lease: LeaseT, additional_time: float, replace_ttl: bool) -> Flow[bool]:
        """Extend a lease by some seconds."""

    def end_flow(self, lease: LeaseT) -> Flow[None]:
        """Release a lease, however often its holder acquired it."""

    def abandon(self, lease: LeaseT) -> None:
        """End a lease and let the background release it."""

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall:
        """Return the step that ends a lease or gives up a ticket: 1, or 0 if the server does not know the token.

        Then it counts as lost, unless it is ``unsure`` whether it was acquired and not released before.
        """

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """Return the step that extends a lease: its new TTL in ms, or 0 if the server does not know the token."""

    def run_flow(self, steps: Flow[Any], **answers: Any) -> Any: ...

    async def arun_flow(self, steps: Flow[Any], **answers: Any) -> Any: ...
