"""Throttles, their rules and decisions, as data for programs."""

import math
from typing import Any

from redis_kit.throttling.commands.tables import name_of
from redis_kit.throttling.rules.storage import Rule
from redis_kit.throttling.statistics.counters import ThrottleCalls
from redis_kit.throttling.statistics.offenders import Offender
from redis_kit.throttling.statistics.shadow_report import ShadowReport
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision


def about(throttle: Throttle, allowed: int, refused: int) -> dict[str, Any]:
    """Return the configuration of a throttle and its calls in the period that was asked for."""
    return {
        "name": throttle.name,
        "using": throttle.using,
        "rates": [str(rate) for rate in throttle.rates],
        "strategy": throttle.strategy,
        "shadow": throttle.shadow,
        "allowed": allowed,
        "refused": refused,
    }


def calls(of_hour: ThrottleCalls) -> dict[str, Any]:
    """Return the calls of an hour."""
    return of_hour._asdict() | {"start": of_hour.start.isoformat()}


def rule(given: Rule | None, *, plain: bool) -> dict[str, Any] | None:
    """Return a rule."""
    if given is None:
        return None
    return given._asdict() | {"shown": name_of(given.shown, plain=plain), "until": given.until.isoformat()}


def offender(row: Offender, *, plain: bool) -> dict[str, Any]:
    """Return an offender."""
    return row._asdict() | {"shown": name_of(row.shown, plain=plain)}


def decision(answer: Decision) -> dict[str, Any]:
    """Return a decision; infinite times are null."""
    waits = {name: _finite(getattr(answer, name)) for name in ("retry_after", "reset_after")}
    return answer._asdict() | waits | {"rate": _text(answer.rate)}


def report(given: ShadowReport) -> dict[str, Any]:
    """Return a report."""
    return given._asdict() | {"rate": _text(given.rate), "proposed": _text(given.proposed), "share": given.share}


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds


def _text(rate: object) -> str | None:
    return str(rate) if rate else None
