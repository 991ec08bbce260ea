"""``REDIS_KIT["CONNECTIONS"]``: the address of each alias, checked without importing a client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit, urlunsplit

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.client import connection_options
from redis_kit.core.client.connection_options import CLIENT, OF_SENTINELS, names
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import did_you_mean

SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
SOURCES = tuple(sorted(option.name for option in connection_options.SOURCES))
OPTION_NAMES = (*SOURCES, "LOCATION")  # of a server, where aliases are expected
OPTIONS, TLS = names(CLIENT), names(connection_options.TLS)
# Options for other clients in a URL. They are left out, or they would change the timeouts and replies of redis_kit.
OF_OTHERS = (
    *("protocol", "legacy_responses", "decode_responses", "encoding", "encoding_errors", "lib_name", "lib_version"),
    *("max_connections", "timeout", "socket_timeout", "socket_connect_timeout", "socket_read_size", "socket_type"),
    *("retry_on_timeout", "retry_on_error", "single_connection_client", "read_from_replicas", "require_full_coverage"),
)
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
    conf.section(KitSettings)  # raises for a wrong option beside the connections
    connections = aliases()
    for problem in chain(_misplaced(), _alias_missing(alias, connections)):
        raise ConfigurationError(_text(problem))
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
    if not isinstance(conf.configured().get("CONNECTIONS") or {}, Mapping) or any(_misplaced()):
        return  # reported with the options at the top of REDIS_KIT
    connections = aliases()
    if "default" not in connections:
        yield from _alias_missing("default", connections)
    for alias, given in connections.items():
        if alias not in OPTION_NAMES:  # an option in the place of an alias is reported above
            yield from alias_problems(alias, given)


def _misplaced() -> Iterator[conf.Problem]:
    """Yield the problems of the names at the top of REDIS_KIT that were meant for connections, if none are there."""
    given = conf.configured()
    if given.get("CONNECTIONS") is None:
        yield from filter(None, (connection_options.misplaced(name, value) for name, value in given.items()))


def _alias_missing(alias: str, connections: Mapping[str, Any]) -> Iterator[conf.Problem]:
    """Yield the problem of a connection that is not there, with those that are."""
    if alias in connections:
        return
    if options := [name for name in connections if name in OPTION_NAMES]:
        wrong = f"REDIS_KIT['CONNECTIONS'] has {options[0]!r} in the place of an alias."
        yield conf.Problem("E002", wrong, f"Write 'CONNECTIONS': {{'default': {{{options[0]!r}: ...}}}}.")
        return
    listing = ", ".join(map(repr, connections)) or "none"
    if alias == "default":
        wrong = "REDIS_KIT['CONNECTIONS'] has no 'default', the connection of everything that names no other."
        yield conf.Problem("E002", wrong, f"Add 'default': {{'URL': 'redis://...'}}. Connections: {listing}.")
        return
    add = f"Connections: {listing}. Add it as REDIS_KIT['CONNECTIONS'][{alias!r}] = {{'URL': 'redis://...'}}."
    near = did_you_mean(alias, connections)
    yield conf.Problem("E002", f"There is no connection {alias!r}.", f"{near} {add}".strip())


def alias_problems(alias: str, given: Any) -> Iterator[conf.Problem]:
    """Yield the problems of one connection."""
    where = f"REDIS_KIT['CONNECTIONS'][{alias!r}]"
    if not isinstance(alias, str):
        yield conf.Problem("E002", f"REDIS_KIT['CONNECTIONS'] has the alias {alias!r}; an alias must be text.")
        return
    if not isinstance(given, Mapping):
        kind, hint = conf.described_value(given), "Write {'URL': 'redis://localhost:6379/0'}."
        yield conf.Problem("E002", f"{where} is {kind}; it must be a dict with one of {', '.join(SOURCES)}.", hint)
        return
    chosen = [source for source in SOURCES if source in given]
    if len(chosen) != 1:
        hint = f"It has {' and '.join(chosen)}." if chosen else connection_options.source_hint(given)
        yield conf.Problem("E002", f"{where} must have exactly one of {', '.join(SOURCES)}.", hint)
        return
    source, value = chosen[0], given[chosen[0]]
    if source in ("URL", "CLUSTER"):
        yield from _url_problems(f"{where}['{source}']", value, cluster=source == "CLUSTER")
    elif source == "CACHE" and not _is_redis_cache(value):
        yield conf.Problem(
            "E001", f"{where} names the cache {value!r}, which is not a Redis cache in CACHES.", _cache_hint()
        )
    elif source == "EMBEDDED":
        yield from _embedded_problems(where, value)
    yield from connection_options.option_problems(where, given, source)
    if source == "SENTINELS":
        yield from _sentinel_problems(where, given)


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
        yield from connection_options.database_problems(where, unquote(database), cluster=cluster)


def _sentinel_problems(where: str, given: Mapping[str, Any]) -> Iterator[conf.Problem]:
    try:
        pairs = [(str(host), int(port)) for host, port in given["SENTINELS"]]
    except (TypeError, ValueError):
        pairs = []
    if not pairs:
        yield conf.Problem(
            "E003", f"{where}['SENTINELS'] must be a list of (host, port).", "[('10.0.0.1', 26379)], for instance."
        )
    if not isinstance(given.get("SERVICE"), str) or not given["SERVICE"]:
        yield conf.Problem("E003", f"{where} needs a 'SERVICE': the name that the sentinels know the primary by.")
    if (inner := given.get("SENTINEL_KWARGS")) is not None:
        yield from connection_options.sentinel_option_problems(f"{where}['SENTINEL_KWARGS']", inner)


def _embedded_problems(where: str, value: Any) -> Iterator[conf.Problem]:
    from redis_kit.core.embedded import server

    if value is not True:
        hint = "To do without it, give a URL instead."
        yield conf.Problem("E003", f"{where}['EMBEDDED'] is {value!r}; it can only be True.", hint)
    elif reason := server.refusal():
        yield conf.Problem("E003", f"{where}['EMBEDDED']: {reason}")


def _cache_hint() -> str:
    caches = ", ".join(repr(alias) for alias in settings.CACHES if _is_redis_cache(alias))
    return f"Redis caches: {caches}." if caches else "Without a Redis cache, give the server: {'URL': 'redis://...'}."


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
