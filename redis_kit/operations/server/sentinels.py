"""Advice about the Sentinels of a connection."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.utils.translation import gettext as _

from redis_kit.core.client import connection_factory
from redis_kit.core.client.addresses import address
from redis_kit.core.errors import RedisUnavailable
from redis_kit.operations.server.advice import Advice


def sentinel_advice(alias: str, *, timeout: float = 0.25) -> list[Advice]:
    """Return the advice about the Sentinels of a connection; none without Sentinels. Asks all of them at once.

    ``timeout`` is that of connecting and of reading, in seconds. Raises RedisUnavailable if none answers.
    """
    server = address(alias)
    if not server.sentinels:
        return []
    timeouts = {"socket_connect_timeout": timeout, "socket_timeout": timeout}
    with ThreadPoolExecutor(len(server.sentinels)) as threads:
        answers = list(threads.map(_answer, connection_factory.factory(server, timeouts).sentinels))
    states = [services.get(server.service) for services in answers if isinstance(services, dict)]
    missing = [
        f"{host}:{port} ({error})"
        for (host, port), error in zip(server.sentinels, answers, strict=True)
        if isinstance(error, str)
    ]
    if not states:
        raise RedisUnavailable(f"None of the Sentinels answers: {', '.join(missing)}.")
    advice = []
    if missing:
        wrong = _("These Sentinels do not answer: %(addresses)s.") % {"addresses": ", ".join(missing)}
        advice.append(
            Advice(
                "warning",
                wrong,
                _("Start them, remove them from SENTINELS, or give their password in SENTINEL_KWARGS."),
            )
        )
    watching = [state for state in states if state]
    if len(watching) < len(states):
        wrong = _("Some Sentinels do not watch the service %(service)s.") % {"service": server.service}
        advice.append(Advice("error", wrong, f"SENTINEL MONITOR {server.service} HOST PORT QUORUM"))
    if watching and max(state["num-other-sentinels"] for state in watching) < 2:
        wrong = _("Fewer than three Sentinels watch the service: the loss of one may prevent a fail-over.")
        advice.append(Advice("warning", wrong, _("Run three Sentinels, on different machines.")))
    if watching and max(state["num-slaves"] for state in watching) < 1:
        wrong = _("The service has no replica, so a fail-over is impossible.")
        advice.append(Advice("warning", wrong, "REPLICAOF HOST PORT"))
    return advice


def _answer(client: Any) -> dict[str, Any] | str:
    """Return what a Sentinel knows of each service, or why it does not answer."""
    import redis

    try:
        services: dict[str, Any] = client.sentinel_masters()
    except (redis.RedisError, OSError) as error:
        return str(error).rstrip(".")
    finally:
        client.close()
    return services
