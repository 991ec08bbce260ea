"""``REDIS_KIT["CONNECTIONS"]``: the address of each alias, checked without importing a client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit, urlunsplit

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.settings import KitSettings

SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
SOURCES = ("CACHE", "CLUSTER", "EMBEDDED", "SENTINELS", "URL")
# Only these options of a client count, and those for TLS: timeouts, retries and replies are up to redis_kit.
OPTIONS = (
    "db",
    "username",
    "password",
    "credential_provider",
    "client_name",
    "socket_keepalive",
    "health_check_interval",
)
TLS = (
    *("ssl_keyfile", "ssl_certfile", "ssl_cert_reqs", "ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_password"),
    *("ssl_check_hostname", "ssl_min_version", "ssl_ciphers", "ssl_include_verify_flags", "ssl_exclude_verify_flags"),
    *("ssl_validate_ocsp", "ssl_validate_ocsp_stapled", "ssl_ocsp_context", "ssl_ocsp_expected_cert"),
)
OF_SENTINELS = ("username", "password", "credential_provider", "ssl", *TLS)
# Options for other clients in a URL. They are left out, or they would change the timeouts and replies of redis_kit.
OF_OTHERS = (
    *("protocol", "legacy_responses", "decode_responses", "encoding", "encoding_errors", "lib_name", "lib_version"),
    *("max_connections", "timeout", "socket_timeout", "socket_connect_timeout", "socket_read_size", "socket_type"),
    *("retry_on_timeout", "retry_on_error", "single_connection_client", "read_from_replicas", "require_full_coverage"),
)
# Names that other clients have for options of REDIS_KIT itself.
TIMEOUTS = {"SOCKET_TIMEOUT": "READ_TIMEOUT", "SOCKET_CONNECT_TIMEOUT": "CONNECT_TIMEOUT"}
CACHES = ("django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache")


@dataclass(frozen=True)
class Address:
    """Where a server is: a URL, or a Sentinel service with the sentinels that know it."""

    url: str = ""
    cluster: bool = False
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    sentinel_options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Name the server for a message, without its password."""
        if self.sentinels:
            return f"Sentinel service {self.service!r}"
        return masked(self.url)


def aliases() -> dict[str, Any]:
    """Return the connections of this project: those it set, else ``default`` from the ``default`` cache."""
    connections = conf.configured().get("CONNECTIONS")
    return dict(connections) if isinstance(connections, Mapping) else {"default": {"CACHE": "default"}}


def address(alias: str) -> Address:
    """Return the address of an alias. Raises ConfigurationError, which names the problem and the options allowed."""
    connections = aliases()
    if alias not in connections:
        raise ConfigurationError(_text(conf.unknown("REDIS_KIT['CONNECTIONS']", alias, connections)))
    for problem in alias_problems(alias, connections[alias]):
        raise ConfigurationError(_text(problem))
    given = dict(connections[alias])
    if given.pop("EMBEDDED", False):
        from redis_kit.core.embedded import server

        return Address(url=server.shared_url())
    if "CACHE" in given:
        return _from_cache(given["CACHE"])
    if "CLUSTER" in given:
        return Address(url=_plain(given.pop("CLUSTER")), cluster=True, options=_client_options(given))
    if "SENTINELS" in given:
        sentinels = tuple((host, int(port)) for host, port in given["SENTINELS"])
        return Address(
            sentinels=sentinels,
            service=given["SERVICE"],
            options=_client_options(given, "ssl", *OPTIONS),
            sentinel_options=_client_options(given.get("SENTINEL_KWARGS") or {}, *OF_SENTINELS),
        )
    return Address(url=_plain(given.pop("URL")), options=_client_options(given))


def problems() -> Iterator[conf.Problem]:
    """Yield the problems of all connections."""
    if not conf.configured() and not _is_redis_cache("default"):
        yield conf.Problem(
            "E001",
            "REDIS_KIT is missing, and the 'default' cache is not Redis.",
            "Set REDIS_KIT['CONNECTIONS'] = {'default': {'URL': 'redis://...'}}, or {'EMBEDDED': True} for a trial.",
        )
        return
    connections = aliases()
    if "default" not in connections:
        yield conf.Problem("E002", "REDIS_KIT['CONNECTIONS'] has no 'default', which is used unless told otherwise.")
    for alias, given in connections.items():
        yield from alias_problems(alias, given)


def alias_problems(alias: str, given: Any) -> Iterator[conf.Problem]:
    """Yield the problems of one connection."""
    where = f"REDIS_KIT['CONNECTIONS'][{alias!r}]"
    chosen = [source for source in SOURCES if source in given] if isinstance(given, Mapping) else []
    if len(chosen) != 1:
        wrong = [key for key in given if key not in SOURCES] if isinstance(given, Mapping) else []
        hint = conf.unknown(where, wrong[0], list(SOURCES)).hint if wrong else ""
        yield conf.Problem("E002", f"{where} must have exactly one of {', '.join(SOURCES)}.", hint)
        return
    source, value = chosen[0], given[chosen[0]]
    if source in ("URL", "CLUSTER"):
        yield from _url_problems(f"{where}['{source}']", value, cluster=source == "CLUSTER")
    elif source == "CACHE" and not _is_redis_cache(value):
        yield conf.Problem("E001", f"{where} names the cache {value!r}, which is not a Redis cache in CACHES.")
    elif source == "SENTINELS":
        yield from _sentinel_problems(where, given)
    elif source == "EMBEDDED":
        yield from _embedded_problems(where, value)
    yield from _option_problems(where, given, source)


def masked(url: str) -> str:
    """Return a URL without its password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a URL that can't be read"
    user, at, host = parts.netloc.rpartition("@")
    shown = f"{user.partition(':')[0]}:***{at}{host}" if ":" in user else parts.netloc
    query = "&".join(part for part in parts.query.split("&") if part and "password" not in part.lower())
    return urlunsplit(parts._replace(netloc=shown, query=query))


def _url_problems(where: str, url: Any, *, cluster: bool) -> Iterator[conf.Problem]:
    if not isinstance(url, str) or not url:
        yield conf.Problem("E003", f"{where} is {url!r}; it must be a URL.", "For instance 'redis://localhost:6379/0'.")
        return
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        port_is_right = False
    if not port_is_right or parts.scheme not in SCHEMES or not (parts.netloc or parts.path):
        allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        yield conf.Problem("E003", f"{where} is {masked(url)!r}; it must be a server's URL.", f"Schemes: {allowed}.")
        return
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name not in (*OPTIONS, *TLS, *OF_OTHERS):
            yield conf.unknown(where, name, [*OPTIONS, *TLS])
    path = "" if parts.scheme == "unix" else parts.path.strip("/")
    for database in filter(None, [path, *parse_qs(parts.query, keep_blank_values=True).get("db", [])]):
        if not database.isdecimal() or int(database) > 15 or (cluster and int(database)):
            allowed = "0 with Cluster" if cluster else "0 to 15"
            yield conf.Problem("E004", f"{where} names database {unquote(database)!r}; allowed: {allowed}.")


def _sentinel_problems(where: str, given: Mapping[str, Any]) -> Iterator[conf.Problem]:
    try:
        pairs = [(str(host), int(port)) for host, port in given["SENTINELS"]]
    except (TypeError, ValueError):
        pairs = []
    if not pairs:
        yield conf.Problem("E003", f"{where}['SENTINELS'] must be a list of (host, port).")
    if not isinstance(given.get("SERVICE"), str) or not given["SERVICE"]:
        yield conf.Problem("E003", f"{where} needs a 'SERVICE': the name that the sentinels know the primary by.")


def _option_problems(where: str, given: Mapping[str, Any], source: str) -> Iterator[conf.Problem]:
    allowed: tuple[str, ...] = {"URL": (*OPTIONS, *TLS), "CLUSTER": (*OPTIONS, *TLS)}.get(source, ())
    if source == "SENTINELS":
        allowed = ("service", "sentinel_kwargs", "ssl", *OPTIONS, *TLS)
        inner = given.get("SENTINEL_KWARGS") or {}
        if not isinstance(inner, Mapping):
            yield conf.Problem("E003", f"{where}['SENTINEL_KWARGS'] must be a dict, such as {{'password': '...'}}.")
        else:
            wrong = [name for name in inner if str(name).lower() not in OF_SENTINELS]
            yield from (_unknown(f"{where}['SENTINEL_KWARGS']", name, list(OF_SENTINELS)) for name in wrong)
    for name in given:
        if name == "SSL" and source in ("URL", "CLUSTER"):
            yield conf.Problem("E002", f"{where} has no option 'SSL'.", "Begin the URL with rediss://.")
        elif name != source and str(name).lower() not in allowed:
            yield _unknown(where, name, [option.upper() for option in allowed] or [source])


def _unknown(where: str, name: Any, allowed: list[str]) -> conf.Problem:
    """Return the problem of an option that does not exist there, with the place where it belongs."""
    problem, wanted = conf.unknown(where, name, allowed), str(name).upper()
    if wanted in conf.options(KitSettings):
        return problem._replace(hint="It is an option of REDIS_KIT itself, not of a connection.")
    if wanted in TIMEOUTS:
        option = TIMEOUTS[wanted]
        return problem._replace(hint=f"Set REDIS_KIT['{option}'], which holds for all connections.")
    if wanted.startswith("SENTINEL_") and (inner := wanted.removeprefix("SENTINEL_").lower()) in OF_SENTINELS:
        return problem._replace(hint=f"It goes into 'SENTINEL_KWARGS': {{'{inner}': ...}}.")
    return problem


def _embedded_problems(where: str, value: Any) -> Iterator[conf.Problem]:
    from redis_kit.core.embedded import server

    if value is not True:
        hint = "To do without it, give a URL instead."
        yield conf.Problem("E003", f"{where}['EMBEDDED'] is {value!r}; it can only be True.", hint)
    elif reason := server.refusal():
        yield conf.Problem("E003", f"{where}['EMBEDDED']: {reason}")


def _is_redis_cache(alias: Any) -> bool:
    from django.utils.module_loading import import_string

    backend = settings.CACHES.get(alias, {}).get("BACKEND", "") if isinstance(alias, str) else ""
    if backend in CACHES:
        return True
    try:
        kinds = {kind.__module__ + "." + kind.__qualname__ for kind in import_string(backend).__mro__}
    except (ImportError, AttributeError):
        return False
    return not kinds.isdisjoint(CACHES)


def _from_cache(alias: str) -> Address:
    entry = settings.CACHES[alias]
    location = entry.get("LOCATION", "")
    first = location[0] if isinstance(location, (list, tuple)) else location.replace(";", ",").split(",")[0]
    options = dict(entry.get("OPTIONS", {}))
    extra = _client_options(
        {**options.get("CONNECTION_POOL_KWARGS", {}), **options.get("REDIS_CLIENT_KWARGS", {}), **options},
        "ssl",
        *OPTIONS,
    )
    if "SENTINELS" not in options:
        extra.pop("ssl", None)  # which the URL says
        return Address(url=_plain(first), options=extra)
    parts = urlsplit(first)
    named = {"username": parts.username, "password": parts.password, "db": parts.path.strip("/")}
    in_url = {name: unquote(value) for name, value in named.items() if value}
    in_url |= {name: value for name, value in parse_qsl(parts.query) if name in (*OPTIONS, *TLS)}
    if "db" in in_url:
        extra["db"] = int(in_url.pop("db"))
    if SCHEMES.get(parts.scheme) == "rediss":
        extra["ssl"] = True
    return Address(
        sentinels=tuple((host, int(port)) for host, port in options["SENTINELS"]),
        service=parts.hostname or "",
        options=in_url | extra,
        sentinel_options=_client_options(options.get("SENTINEL_KWARGS") or {}, *OF_SENTINELS),
    )


def _plain(url: str) -> str:
    """Return a URL with the scheme that redis-py knows, and without the options for other clients."""
    scheme, rest = url.split(":", 1)
    rest, _, query = rest.partition("?")
    allowed = [part for part in query.split("&") if unquote(part.partition("=")[0]) in (*OPTIONS, *TLS)]
    return f"{SCHEMES.get(scheme, scheme)}:{rest}{'?' if allowed else ''}{'&'.join(allowed)}"


def _client_options(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    lowered = {str(name).lower(): value for name, value in given.items()}
    return {name: value for name, value in lowered.items() if name in (names or OPTIONS) or name in TLS}


def _text(problem: conf.Problem) -> str:
    return f"{problem.message} {problem.hint}".strip()
