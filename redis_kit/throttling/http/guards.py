"""Guards: the throttles that a request has to pass before its view runs."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, NamedTuple

from django.http import HttpRequest

from redis_kit.core import flow
from redis_kit.core.awaitables import Result, maybe_await
from redis_kit.core.flow import Flow
from redis_kit.throttling.engine.decide import Reservation, refund_flow
from redis_kit.throttling.http.responses import Verdict, add_fields, decisive, refuse, with_fields
from redis_kit.throttling.identity import IdentityKey
from redis_kit.throttling.throttles import Throttle, reserve_flow

NOT_ASYNC = "A function of the throttle is a coroutine function, but the view is sync."

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

    def hit(self, request: HttpRequest) -> Flow[Hit | None]:
        """Return the hit that a request is; None if it is exempt. The guard's functions may be async in async code."""
        if self.exempt is not None:
            with self._noted("whether it is exempt"):
                if (yield Result(self.exempt(request), NOT_ASYNC)):
                    return None
        with self._noted("its identity"):
            identity = yield from self.key.find(request)
        with self._noted("its cost"):
            cost = (yield Result(self.cost(request), NOT_ASYNC)) if callable(self.cost) else self.cost
        return self.throttle, identity, cost

    def counts(self, request: HttpRequest, response: Any) -> Flow[bool]:
        """Return whether a call stays counted after this response."""
        if self.count_when is None:
            return True
        with self._noted("whether it counts"):
            return bool((yield Result(self.count_when(request, response), NOT_ASYNC)))

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
    guarded = flow.run(_before(guards, request), None)
    if guarded.refusal is not None:
        return guarded.refusal
    response = view(request, *args, **kwargs)
    if isawaitable(response):  # an async view that does not look like one, such as a partial
        return _finish(guarded, request, response)
    return flow.run(_after(guarded, request, response), None)


async def aanswer(guards: Sequence[Guard], request: Any, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """See answer()."""
    guards = [guard for guard in guards if guard.applies_to(request)]
    if not guards:
        return await maybe_await(view(request, *args, **kwargs))
    guarded = await flow.arun(_before(guards, request), None)
    if guarded.refusal is not None:
        return guarded.refusal
    return await _finish(guarded, request, view(request, *args, **kwargs))


class GuardedRequest(NamedTuple):
    """One request and its guards: what was reserved with each of them, what they decided, and how they refused it.

    A reservation is None for a guard from which the request is exempt.
    """

    guards: Sequence[Guard]
    costs: Sequence[int]
    reservations: Sequence[Reservation | None]
    verdicts: list[Verdict]
    refusal: Any = None


def _before(guards: Sequence[Guard], request: Any) -> Flow[GuardedRequest]:
    hits = []
    for guard in guards:
        hits.append((yield from guard.hit(request)))
    counted = iter((yield from reserve_flow([hit for hit in hits if hit])))
    reservations = [next(counted) if hit else None for hit in hits]
    costs = [hit[2] if hit else 0 for hit in hits]
    verdicts = [
        Verdict(guard.throttle, guard.throttle.answer(True, "exempt") if taken is None else taken.decision)
        for guard, taken in zip(guards, reservations, strict=True)
    ]
    request.throttles = [*getattr(request, "throttles", ()), *verdicts]  # after those of outer guards
    request.throttle = decisive(request.throttles).decision
    if all(verdict.decision.allowed for verdict in verdicts):
        return GuardedRequest(guards, costs, reservations, verdicts)
    response = yield Result(refuse(request, verdicts), NOT_ASYNC)
    return GuardedRequest(guards, costs, reservations, verdicts, with_fields(response, verdicts))


def _after(guarded: GuardedRequest, request: Any, response: Any) -> Flow[Any]:
    uncounted = []
    verdicts = guarded.verdicts
    for index, (guard, taken) in enumerate(zip(guarded.guards, guarded.reservations, strict=True)):
        if taken is None or (yield from guard.counts(request, response)):
            continue
        uncounted.append(taken)
        decision = taken.decision
        remaining = min(decision.limit, decision.remaining + guarded.costs[index])
        corrected = decision._replace(remaining=remaining, reset_after=math.inf)  # its end is unknown
        verdicts[index] = Verdict(guard.throttle, corrected)
    yield from refund_flow(uncounted)
    return add_fields(response, verdicts)


async def _finish(guarded: GuardedRequest, request: Any, response: Any) -> Any:
    return await flow.arun(_after(guarded, request, await maybe_await(response)), None)
