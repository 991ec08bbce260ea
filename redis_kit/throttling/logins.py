"""Failed log-ins: how many a user name and an address may have before further passwords are not checked."""

import contextlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from django.contrib.auth import get_backends, get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_variables

from redis_kit.core import conf, connections, flow, steps
from redis_kit.core.client.cluster import ClusterClient
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.web.client_address import client_address
from redis_kit.throttling.engine.base import Asked
from redis_kit.throttling.engine.decide import Call, Mode, Outcome, decide
from redis_kit.throttling.identity import ADDRESS, SPELLINGS
from redis_kit.throttling.keys import WRITTEN
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.throttles import Throttle, hit_all
from redis_kit.throttling.values import Ban, Decision

NAME = "name:"  # how the identity of a user name begins
LONGEST_NAME = 256  # characters of a user name that are compared
TYPED = "_redis_kit_login_name"  # the typed name may be an e-mail address, which is not the user name

Hit = tuple[Throttle, str]


class ThrottledLogins:
    """An authentication backend that authenticates nobody, and refuses log-ins after too many failures.

    Put it first in AUTHENTICATION_BACKENDS. It peeks whether the user name and the address of the request may try, in
    one round trip (two unless the failure policy is ``open``). If not, it raises PermissionDenied, which ends
    authenticate(), and ``request.throttle`` is the Decision. Each failure counts for both. A log-in resets the failures
    of the name. Without a request only the user name is counted. It has no get_user(), so no session refers to it.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Return None, so that the next backend is asked. Raises PermissionDenied after too many failures."""
        flow.run(_check(request, _name(credentials)), None)

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """See authenticate()."""
        await flow.arun(_check(request, _name(credentials)), None)


class LoginRefusedMixin:
    """For a log-in form: after too many failures the error says so and when to retry, not that the name is wrong.

    It says that log-ins are not possible if the failure policy refused.
    """

    request: Any

    def get_invalid_login_error(self) -> ValidationError:
        """Return the error of the form."""
        if not _was_refused(self.request):
            error: ValidationError = super().get_invalid_login_error()  # type: ignore[misc]
            return error
        if self.request.throttle.reason == "outage":
            return ValidationError(_("It is not possible to log in at the moment. Try again soon."), code="throttled")
        minutes = math.ceil(self.request.throttle.retry_after / 60)
        text = ngettext(
            "There were too many failed attempts. Try again in %(minutes)d minute.",
            "There were too many failed attempts. Try again in %(minutes)d minutes.",
            minutes,
        )
        return ValidationError(text % {"minutes": minutes}, code="throttled")


def active() -> bool:
    """Return whether the project uses the backend."""
    return any(isinstance(backend, ThrottledLogins) for backend in get_backends())


def count(request: HttpRequest | None, credentials: dict[str, Any]) -> None:
    """Count a failure for user name and address in one round trip. A refused log-in is only counted as refused."""
    hits = _hits(request, _name(credentials))
    decisions = hit_all(hits) if hits else []
    if all(decisions) or _was_refused(request):
        return
    # Concurrent failures used up the limit, but this password was checked too: each throttle with room counts it.
    for (throttle, identity), decision in zip(hits, decisions, strict=True):
        if decision and decision.reason in ("", "unasked"):
            throttle.hit(identity)


def forget(request: HttpRequest | None, user: Any) -> None:
    """Reset the failures of a user name after a log-in. Those of the address stay: it may be an attacker's."""
    for name in {_folded(user.get_username()), getattr(request, TYPED, "")} - {""}:
        for throttle, identity in _hits(None, name):
            with contextlib.suppress(RedisFailure):  # the log-in succeeds without it
                throttle.reset(identity)


def _hits(request: HttpRequest | None, name: str) -> list[Hit]:
    options = conf.section(ThrottlingSettings)
    if not options.ENABLED:
        return []
    hits: list[Hit] = []
    if name and options.LOGIN_RATES:
        hits.append((_of_names(), f"{NAME}{name}"))
    if request is not None and options.LOGIN_ADDRESS_RATES:
        hits.append((_of_addresses(), f"{ADDRESS}{client_address(request)}"))
    return hits


def throttles() -> list[Throttle]:
    """Return the throttles of log-ins if the backend is in use."""
    return [_of_names(), _of_addresses()] if active() else []


def _of_names() -> Throttle:
    return _throttle("logins.name", conf.section(ThrottlingSettings).LOGIN_RATES, None, NAME)


def _of_addresses() -> Throttle:
    options = conf.section(ThrottlingSettings)
    return _throttle(
        "logins.address", options.LOGIN_ADDRESS_RATES, Ban(*options.LOGIN_BAN) if options.LOGIN_BAN else None, ADDRESS
    )


@lru_cache(maxsize=8)
def _throttle(name: str, rates: str | None, ban: Ban | None, start: str) -> Throttle:
    throttle = Throttle(name, rates, ban=ban)
    throttle.identity_shapes[((start,),)] = None
    return throttle


def _name(credentials: dict[str, Any]) -> str:
    given = credentials.get(get_user_model().USERNAME_FIELD) or credentials.get("username")
    return _folded(str(given)) if given else ""


def _folded(name: str) -> str:
    """Return the same text for all spellings of a user name that a site may treat as equal."""
    text = normalize("NFKC", name[:LONGEST_NAME]).casefold()
    return normalize("NFKC", text).strip()[:LONGEST_NAME].encode("utf-8", "replace").decode()


SPELLINGS[NAME] = _folded


def _check(request: HttpRequest | None, name: str) -> Flow[None]:
    """Refuse a log-in if a throttle has no room for a failure, else note the name. A flow without a client."""
    calls = [Call(throttle, throttle.checked(identity, 1), 1) for throttle, identity in _hits(request, name)]
    try:
        outcomes = (yield Asked(calls[0].throttle, _peek(calls))) if calls else []
    except RedisFailure as error:
        outcomes = [call.throttle.when_unavailable(call, error, consume=False) for call in calls]
    if refused := [outcome.decision for outcome in outcomes if not outcome.decision]:
        if request is not None:
            request.throttle = max(refused, key=lambda decision: decision.retry_after)  # type: ignore[attr-defined]
        raise PermissionDenied("There were too many failed log-ins.")
    if request is not None:
        setattr(request, TYPED, name)


def _peek(calls: Sequence[Call[Throttle]]) -> Flow[list[Outcome]]:
    throttle = calls[0].throttle
    on_different_nodes = isinstance(connections.client(throttle.using), ClusterClient)
    outcomes = []
    if throttle.policy() != "open":
        # A server that is full or read-only answers, but counts no failure; here that is an outage.
        yield steps.Call("SET", throttle.key(WRITTEN), 1, "PX", 1000)
    for group in [[call] for call in calls] if on_different_nodes else [calls]:
        outcomes += yield from decide(group, Mode.LOOK)
    return outcomes


def _was_refused(request: HttpRequest | None) -> bool:
    return isinstance(decision := getattr(request, "throttle", None), Decision) and not decision
