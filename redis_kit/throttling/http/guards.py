"""Guards: the throttles that a request has to pass before its view runs."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, NamedTuple

from django.http import HttpRequest

from redis_kit.core.awaitables import maybe_await, not_awaitable
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.throttling.engine.reservation import Reservation, arefund_all, refund_all
from redis_kit.throttling.http.headers import Verdict, add_fields
from redis_kit.throttling.http.responses import decisive, refuse, with_fields
from redis_kit.throttling.throttles.hit_all import areserve_all, reserve_all
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.identity import IdentityKey

Hit = tuple[Throttle, Any, int]  # throttle, identity and cost


class Guard(NamedTuple):
    """One throttle before a view: which calls it counts, for which identity, and at what cost."""

    throttle: Throttle
    key: IdentityKey
    methods: frozenset[str] | None = None
    cost: int | Callable[[HttpRequest], Any] = 1
    exempt: Callable[[HttpRequest], Any] | None = None
    count_when: Callable[[HttpRequest, Any], Any] | None = None

    def applies_to(self, request: Any) -> bool:
        """Return whether requests with this method are counted."""
        if not hasattr(request, "META"):
            raise TypeError(f"The throttle {self.throttle.name!r} got no request: on methods, use method_decorator.")
        return self.methods is None or request.method in self.methods

    def hit(self, request: HttpRequest) -> Hit | None:
        """Return the hit that a request is; None if it is exempt."""
        if self.exempt is not None:
            with self._noted("whether it is exempt"):
                if _at_once(self.exempt(request)):
                    return None
        with self._noted("its identity"):
            identity = self.key.of(request)
        with self._noted("its cost"):
            return self.throttle, identity, _at_once(self.cost(request)) if callable(self.cost) else self.cost

    async def ahit(self, request: HttpRequest) -> Hit | None:
        """See hit(). The functions of the guard may be coroutine functions here."""
        if self.exempt is not None:
            with self._noted("whether it is exempt"):
                if await maybe_await(self.exempt(request)):
                    return None
        with self._noted("its identity"):
            identity = await self.key.aof(request)
        with self._noted("its cost"):
            return self.throttle, identity, await maybe_await(self.cost(request)) if callable(self.cost) else self.cost

    def counts(self, request: HttpRequest, response: Any) -> bool:
        """Return whether a call stays counted after this response."""
        with self._noted("whether it counts"):
            return self.count_when is None or bool(_at_once(self.count_when(request, response)))

    async def acounts(self, request: HttpRequest, response: Any) -> bool:
        """See counts()."""
        with self._noted("whether it counts"):
            return self.count_when is None or bool(await maybe_await(self.count_when(request, response)))

    @contextmanager
    def _noted(self, question: str) -> Iterator[None]:
        """Add a note about the throttle to an error of one of its functions."""
        try:
            yield
        except Exception as error:
            error.add_note(f"While asking about a request, {question}, for the throttle {self.throttle.name!r}.")
            raise


def answer(guards: Sequence[Guard], request: Any, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the response of the view if the request passes all guards, else a refusal.

    The call is counted before the view runs, by all throttles or by none, in one round trip. If ``count_when`` of some
    guards returns false for the response, the call is refunded to them in a second one. A call whose view raises an
    exception stays counted.
    """
    guards = [guard for guard in guards if guard.applies_to(request)]
    if not guards:
        return view(request, *args, **kwargs)
    hits = [guard.hit(request) for guard in guards]
    guarded = GuardedRequest(guards, hits, reserve_all([hit for hit in hits if hit]))
    guarded.annotate(request)
    if guarded.is_refused:
        return with_fields(_at_once(refuse(request, guarded.verdicts)), guarded.verdicts)
    response = view(request, *args, **kwargs)
    if isawaitable(response):  # an async view that does not look like one, such as a partial
        return _finish(guarded, request, response)
    uncounted = [index for index, guard in guarded.conditional if not guard.counts(request, response)]
    refund_all(guarded.uncount(uncounted))
    return add_fields(response, guarded.verdicts)


async def aanswer(guards: Sequence[Guard], request: Any, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """See answer()."""
    guards = [guard for guard in guards if guard.applies_to(request)]
    if not guards:
        return await maybe_await(view(request, *args, **kwargs))
    hits = [await guard.ahit(request) for guard in guards]
    guarded = GuardedRequest(guards, hits, await areserve_all([hit for hit in hits if hit]))
    guarded.annotate(request)
    if guarded.is_refused:
        return with_fields(await maybe_await(refuse(request, guarded.verdicts)), guarded.verdicts)
    return await _finish(guarded, request, view(request, *args, **kwargs))


class GuardedRequest:
    """One request and its guards: what was reserved with each of them, and what they decided."""

    def __init__(
        self, guards: Sequence[Guard], hits: Sequence[Hit | None], reservations: Sequence[Reservation]
    ) -> None:
        counted = [index for index, hit in enumerate(hits) if hit]
        self.reservations = dict(zip(counted, reservations, strict=True))
        self.costs = [hit[2] if hit else 0 for hit in hits]
        self.conditional = [(index, guards[index]) for index in counted if guards[index].count_when is not None]
        self.verdicts = [
            Verdict(
                guard.throttle,
                self.reservations[index].decision
                if index in self.reservations
                else guard.throttle.answer(True, "exempt"),
            )
            for index, guard in enumerate(guards)
        ]

    @property
    def is_refused(self) -> bool:
        """Return whether a throttle refused."""
        return not all(verdict.decision.allowed for verdict in self.verdicts)

    def annotate(self, request: Any) -> None:
        """Set ``request.throttles``, the verdicts so far with those of outer guards, and ``request.throttle``."""
        request.throttles = [*getattr(request, "throttles", ()), *self.verdicts]
        request.throttle = decisive(request.throttles).decision

    def uncount(self, indices: Sequence[int]) -> list[Reservation]:
        """Return the reservations of guards that don't count the call, and correct their verdicts."""
        for index in indices:
            throttle, decision = self.verdicts[index]
            remaining = min(decision.limit, decision.remaining + self.costs[index])
            corrected = decision._replace(remaining=remaining, reset_after=math.inf)  # its end is unknown
            self.verdicts[index] = Verdict(throttle, corrected)
        return [self.reservations[index] for index in indices]


def check_functions(**given: Any) -> None:
    """Raise InvalidValue for an argument that is neither a callable nor None."""
    for argument, value in given.items():
        if value is not None and not callable(value):
            raise InvalidValue(f"{argument} must be a callable or None, not {shortened(value)}.")


async def _finish(guarded: GuardedRequest, request: Any, response: Any) -> Any:
    response = await maybe_await(response)
    uncounted = [index for index, guard in guarded.conditional if not await guard.acounts(request, response)]
    await arefund_all(guarded.uncount(uncounted))
    return add_fields(response, guarded.verdicts)


def _at_once(result: Any) -> Any:
    return not_awaitable(result, "A function of the throttle is a coroutine function, but the view is sync.")
