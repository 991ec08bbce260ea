"""Failed log-ins: how many a user name and an address may have before no password is looked at any more."""

import contextlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from django.contrib.auth import get_backends, get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_variables

from redis_kit.core import conf, connections
from redis_kit.core.client.cluster import ClusterClient
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.core.web.client_address import client_address
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.engine.base import RETRY
from redis_kit.throttling.engine.decide import Asked, decide
from redis_kit.throttling.throttles.hit_all import hit_all
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.decision import Decision

LONGEST = 256  # characters of a user name that count
TYPED = "_redis_kit_login_name"  # what was typed may be an e-mail address, which is not the user's name

Called = tuple[Throttle, str]


class ThrottledLogins:
    """An authentication backend that knows nobody: it stops whoever failed too often before the others are asked.

    Put it first into AUTHENTICATION_BACKENDS. It looks whether the user name and the address of the request may try, in
    one round trip (two unless the policy is open), and raises PermissionDenied if not, which ends authenticate();
    ``request.throttle`` is then the Decision. Each failure counts for both, and a log-in forgets those of the name. A
    call without a request counts for the user name alone. It has no get_user(), so no session is ever bound to it.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Return None, for the next backend to look. Raises PermissionDenied where there were too many failures."""
        calls = _calls(request, typed := _name(credentials))
        if calls:
            _stop(request, _standing(calls, calls[0][0].carry_out(_look(calls), **_answers(calls))))
        _note(request, typed)

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """See authenticate()."""
        calls = _calls(request, typed := _name(credentials))
        if calls:
            _stop(request, _standing(calls, await calls[0][0].acarry_out(_look(calls), **_answers(calls))))
        _note(request, typed)


class LoginRefusedMixin:
    """For a log-in form: say that there were too many failures, and when to come again, not that a name is wrong."""

    request: Any

    def get_invalid_login_error(self) -> ValidationError:
        """Return the form's error."""
        if not _was_refused(self.request):
            error: ValidationError = super().get_invalid_login_error()  # type: ignore[misc]
            return error
        minutes = math.ceil(self.request.throttle.retry_after / 60)
        text = ngettext(
            "There were too many failed attempts. Try again in %(minutes)d minute.",
            "There were too many failed attempts. Try again in %(minutes)d minutes.",
            minutes,
        )
        return ValidationError(text % {"minutes": minutes}, code="throttled")


def active() -> bool:
    """Say whether the project has the backend."""
    return any(isinstance(backend, ThrottledLogins) for backend in get_backends())


def count(request: HttpRequest | None, credentials: dict[str, Any]) -> None:
    """Count a failure for user name and address in one round trip; one that was stopped counts as refused only."""
    calls = _calls(request, _name(credentials))
    decisions = hit_all(calls) if calls else []
    if all(decisions) or _was_refused(request):
        return
    # Others were quicker: this one tried its password too, so whoever has room left counts it nevertheless.
    for (throttle, identity), decision in zip(calls, decisions, strict=True):
        if decision and decision.reason in ("", "unasked"):
            throttle.hit(identity)


def forget(request: HttpRequest | None, user: Any) -> None:
    """Forget the failures of a user name that has logged in. Those of the address stay: it may be an attacker's."""
    for name in {_folded(user.get_username()), getattr(request, TYPED, "")} - {""}:
        for throttle, identity in _calls(None, name):
            with contextlib.suppress(RedisFailure):  # the log-in is good without it
                throttle.reset(identity)


def _calls(request: HttpRequest | None, name: str) -> list[Called]:
    options = conf.section(ThrottleSettings)
    if not options.ENABLED:
        return []
    calls: list[Called] = []
    if name and options.LOGIN_RATES:
        calls.append((_of_names(), f"name:{name}"))
    if request is not None and options.LOGIN_ADDRESS_RATES:
        calls.append((_of_addresses(), f"ip:{client_address(request)}"))
    return calls


def throttles() -> list[Throttle]:
    """Return the throttles of log-ins, where the backend is in use."""
    return [_of_names(), _of_addresses()] if active() else []


def _of_names() -> Throttle:
    return _throttle("logins.name", conf.section(ThrottleSettings).LOGIN_RATES, None)


def _of_addresses() -> Throttle:
    options = conf.section(ThrottleSettings)
    return _throttle(
        "logins.address", options.LOGIN_ADDRESS_RATES, Ban(*options.LOGIN_BAN) if options.LOGIN_BAN else None
    )


@lru_cache(maxsize=8)
def _throttle(name: str, rates: str | None, ban: Ban | None) -> Throttle:
    return Throttle(name, rates, ban=ban)


def _name(credentials: dict[str, Any]) -> str:
    given = credentials.get(get_user_model().USERNAME_FIELD) or credentials.get("username")
    return _folded(str(given)) if given else ""


def _folded(name: str) -> str:
    """Return one text for all ways to write a user name that a site may take for the same."""
    text = normalize("NFKC", name[:LONGEST]).casefold()
    return normalize("NFKC", text).strip()[:LONGEST].encode("utf-8", "replace").decode()


def _look(calls: Sequence[Called]) -> Flow[list[Decision]]:
    asked = [Asked(throttle, throttle.checked(identity, 1), 1) for throttle, identity in calls]
    apart = isinstance(connections.client(calls[0][0].using), ClusterClient)  # their keys lie on different nodes
    found = []
    if calls[0][0].policy() != "open":
        # A server that is full or read-only still answers, but would count no failure: that is an outage here.
        yield Call("SET", calls[0][0].key("written"), 1, "PX", 1000)
    for group in [[call] for call in asked] if apart else [asked]:
        found += yield from decide(group, consume=False)
    return [outcome.decision for outcome in found]


def _answers(calls: Sequence[Called]) -> dict[str, list[Decision] | None]:
    return {"if_open": [], "if_closed": [calls[0][0].answer(False, "outage", RETRY)], "if_local": None}


def _standing(calls: Sequence[Called], found: list[Decision] | None) -> list[Decision]:
    if found is not None:
        return found
    looked = [throttle.local.decide(throttle.checked(identity, 1), 1, consume=False) for throttle, identity in calls]
    return [decision._replace(reason="local") for decision in looked]


def _stop(request: HttpRequest | None, decisions: Sequence[Decision]) -> None:
    refused = [decision for decision in decisions if not decision]
    if refused:
        if request is not None:
            request.throttle = max(refused, key=lambda one: one.retry_after)  # type: ignore[attr-defined]
        raise PermissionDenied("There were too many failed log-ins.")


def _note(request: HttpRequest | None, typed: str) -> None:
    if request is not None:
        setattr(request, TYPED, typed)


def _was_refused(request: HttpRequest | None) -> bool:
    return isinstance(decision := getattr(request, "throttle", None), Decision) and not decision
