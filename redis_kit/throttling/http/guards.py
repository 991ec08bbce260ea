"""What stands before a view: throttles that a request has to pass, whoever put them there."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple

from django.http import HttpRequest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.throttling.engine.reservation import Reservation, arefund_all, refund_all
from redis_kit.throttling.http.responses import Told, add_fields, deciding, refused
from redis_kit.throttling.throttles.hit_all import areserve_all, reserve_all
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.identity import Key

METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})

Called = tuple[Throttle, Any, int]


class Guard(NamedTuple):
    """One throttle before a view: whose calls it counts, which of them, and at what cost."""

    throttle: Throttle
    key: Key
    methods: frozenset[str] | None = None
    cost: int | Callable[[HttpRequest], Any] = 1
    exempt: Callable[[HttpRequest], Any] | None = None
    count_when: Callable[[HttpRequest, Any], Any] | None = None

    def stands_before(self, request: Any) -> bool:
        """Say whether a request with this method has to pass."""
        if not hasattr(request, "META"):
            raise TypeError(f"The throttle {self.throttle.name!r} got no request: on methods, use method_decorator.")
        return self.methods is None or request.method in self.methods

    def call(self, request: HttpRequest) -> Called | None:
        """Return what to ask the throttle about a request; None where it is exempt."""
        if self.exempt is not None:
            with self._named("whether it is exempt"):
                if _at_once(self.exempt(request)):
                    return None
        with self._named("the identity behind it"):
            identity = self.key.of(request)
        with self._named("its cost"):
            return self.throttle, identity, _at_once(self.cost(request)) if callable(self.cost) else self.cost

    async def acall(self, request: HttpRequest) -> Called | None:
        """See call(). The functions of the guard may be coroutine functions here."""
        if self.exempt is not None:
            with self._named("whether it is exempt"):
                if await _in_time(self.exempt(request)):
                    return None
        with self._named("the identity behind it"):
            identity = await self.key.aof(request)
        with self._named("its cost"):
            return self.throttle, identity, await _in_time(self.cost(request)) if callable(self.cost) else self.cost

    def counts(self, request: HttpRequest, response: Any) -> bool:
        """Say whether a call stays counted after this response."""
        with self._named("whether it counts"):
            return self.count_when is None or bool(_at_once(self.count_when(request, response)))

    async def acounts(self, request: HttpRequest, response: Any) -> bool:
        """See counts()."""
        with self._named("whether it counts"):
            return self.count_when is None or bool(await _in_time(self.count_when(request, response)))

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Say whose function it was that failed."""
        try:
            yield
        except Exception as error:
            error.add_note(f"While asking about a request, {what}, for the throttle {self.throttle.name!r}.")
            raise


def answer(guards: Sequence[Guard], request: Any, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the response of a view to a request that passes all guards, and a refusal to any other.

    The call is counted before the view runs, by all throttles or none: one round trip. Those whose ``count_when`` says
    no to the response give it back afterwards, in a second one; an exception leaves it counted.
    """
    guards = [guard for guard in guards if guard.stands_before(request)]
    if not guards:
        return view(request, *args, **kwargs)
    calls = [guard.call(request) for guard in guards]
    passage = Passage(guards, calls, reserve_all([call for call in calls if call]))
    passage.tell(request)
    if passage.refused:
        return add_fields(_at_once(refused(request, passage.told)), passage.told)
    response = view(request, *args, **kwargs)
    if isawaitable(response):  # a view that does not say that it is async, such as a partial
        return _settled(passage, request, response)
    uncounted = [place for place, guard in passage.open if not guard.counts(request, response)]
    refund_all(passage.give_back(uncounted))
    return add_fields(response, passage.told)


async def aanswer(guards: Sequence[Guard], request: Any, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """See answer()."""
    guards = [guard for guard in guards if guard.stands_before(request)]
    if not guards:
        return await _in_time(view(request, *args, **kwargs))
    calls = [await guard.acall(request) for guard in guards]
    passage = Passage(guards, calls, await areserve_all([call for call in calls if call]))
    passage.tell(request)
    if passage.refused:
        return add_fields(await _in_time(refused(request, passage.told)), passage.told)
    return await _settled(passage, request, view(request, *args, **kwargs))


class Passage:
    """One request at its guards: what was reserved with each, and what they decided."""

    def __init__(self, guards: Sequence[Guard], calls: Sequence[Called | None], held: Sequence[Reservation]) -> None:
        asked = [place for place, call in enumerate(calls) if call]
        self.held = dict(zip(asked, held, strict=True))
        self.costs = [call[2] if call else 0 for call in calls]
        self.open = [(place, guards[place]) for place in asked if guards[place].count_when is not None]
        self.told = [
            Told(guard.throttle, self.held[place].decision if place in self.held else _exempt(guard))
            for place, guard in enumerate(guards)
        ]

    @property
    def refused(self) -> bool:
        """Say whether a throttle refused."""
        return not all(one.decision.allowed for one in self.told)

    def tell(self, request: Any) -> None:
        """Let the view know: all decisions on its request, those of outer guards too, and the one that decides."""
        request.throttles = [*getattr(request, "throttles", ()), *self.told]
        request.throttle = deciding(request.throttles).decision

    def give_back(self, places: Sequence[int]) -> list[Reservation]:
        """Return the reservations of calls that don't count, and let the fields say so."""
        for place in places:
            throttle, decision = self.told[place]
            left = min(decision.limit, decision.remaining + self.costs[place])
            self.told[place] = Told(throttle, decision._replace(remaining=left, reset_after=math.inf))  # t is not known
        return [self.held[place] for place in places]


def methods_of(given: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return methods of requests as they are compared; None, for all, is left so. Raises InvalidValue."""
    if given is None:
        return None
    found = frozenset(str(method).upper() for method in ([given] if isinstance(given, str) else given))
    if unknown := sorted(found - METHODS):
        raise InvalidValue(f"methods holds {', '.join(unknown)}; a method is one of {', '.join(sorted(METHODS))}.")
    if not found:
        raise InvalidValue("methods is empty, so that nothing would be limited; leave it out to limit every method.")
    return found


def check_functions(**given: Any) -> None:
    """Raise InvalidValue for an argument that is neither a callable nor None."""
    for argument, value in given.items():
        if value is not None and not callable(value):
            raise InvalidValue(f"{argument} must be a callable or None, not {shortened(value)}.")


def _exempt(guard: Guard) -> Decision:
    return guard.throttle.answer(True, "exempt")


async def _settled(passage: Passage, request: Any, response: Any) -> Any:
    response = await _in_time(response)
    uncounted = [place for place, guard in passage.open if not await guard.acounts(request, response)]
    await arefund_all(passage.give_back(uncounted))
    return add_fields(response, passage.told)


def _at_once(found: Any) -> Any:
    if isawaitable(found):
        if iscoroutine(found):
            found.close()
        raise TypeError("A function of a throttle is a coroutine function, and the view is not one.")
    return found


async def _in_time(found: Any) -> Any:
    return await found if isawaitable(found) else found
