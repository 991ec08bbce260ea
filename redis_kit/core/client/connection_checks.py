"""The problems of ``REDIS_KIT["CONNECTIONS"]``, each with a way out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.client import connection_options
from redis_kit.core.client.connection_options import CLIENT, names
from redis_kit.core.text import did_you_mean
from redis_kit.core.values.numbers import is_whole

SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
SOURCES = tuple(sorted(option.name for option in connection_options.SOURCES))
OPTION_NAMES = (*SOURCES, "LOCATION")  # of a server, where aliases are expected
OPTIONS, TLS = names(CLIENT), names(connection_options.TLS)
# Options for other clients in a URL. They are left out, or they would change the timeouts and replies of redis_kit.
OF_OTHERS = (
    *("protocol", "legacy_responses", "decode_responses", "encoding", "encoding_errors", "lib_name", "lib_version"),
    *("max_connections", "timeout", "socket_timeout", "socket_connect_timeout", "socket_read_size", "socket_type"),
    *("retry_on_timeout", "retry_on_error", "single_connection_client", "read_from_replicas", "require_full_coverage"),
    "health_check_interval",
)
CACHES = ("django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache")


def problems(connections: Mapping[str, Any]) -> Iterator[conf.Problem]:
    """Yield the problems of all connections."""
    if not isinstance(conf.configured().get("CONNECTIONS"), Mapping | None) or any(top_level_problems()):
        return  # reported with the options at the top of REDIS_KIT
    if wrong := list(none_given()):
        yield from wrong
        return
    if "default" not in connections:
        yield from alias_missing("default", connections)
    for alias, given in connections.items():
        if alias not in OPTION_NAMES:  # an option in the place of an alias is reported above
            yield from alias_problems(alias, given)


def none_given() -> Iterator[conf.Problem]:
    """Yield the problem of a project that names no connection and whose default cache is not Redis."""
    given = conf.configured()
    if given.get("CONNECTIONS") is None and not is_redis_cache("default"):
        missing = "REDIS_KIT['CONNECTIONS'] is None" if "CONNECTIONS" in given else "REDIS_KIT has no CONNECTIONS"
        if not given:
            missing = "REDIS_KIT is empty" if hasattr(settings, "REDIS_KIT") else "REDIS_KIT is missing"
        yield conf.Problem(
            "E001",
            f"{missing}, and the 'default' cache is not Redis.",
            "Set REDIS_KIT['CONNECTIONS'] = {'default': {'URL': 'redis://...'}}, or {'EMBEDDED': True} for a trial.",
        )


def top_level_problems() -> Iterator[conf.Problem]:
    """Yield the problems of the names at the top of REDIS_KIT that were meant for connections, if none are there."""
    given = conf.configured()
    if given.get("CONNECTIONS") is not None:
        return
    sections = {section.name for section in conf.Section.__subclasses__()}
    for name, value in given.items():
        if name not in sections and (problem := connection_options.misplaced_option(name, value)):
            yield problem


def alias_missing(alias: str, connections: Mapping[str, Any]) -> Iterator[conf.Problem]:
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
    if not (isinstance(alias, str) and alias and alias.isprintable()):
        wrong = f"REDIS_KIT['CONNECTIONS'] has the alias {alias!r}"
        yield conf.Problem("E002", f"{wrong}; an alias must be printable text that is not empty.")
        return
    if not isinstance(given, Mapping):
        kind, hint = conf.described_value(given), "Write {'URL': 'redis://localhost:6379/0'}."
        yield conf.Problem("E002", f"{where} is {kind}; it must be a dict with one of {', '.join(SOURCES)}.", hint)
        return
    yield from test_problems(where, given.get("TEST"))
    yield from _entry_problems(where, given)


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


def is_redis_cache(alias: Any) -> bool:
    """Tell whether an alias of CACHES is a cache of django-redis or Django's own Redis cache."""
    from django.utils.module_loading import import_string

    entry = settings.CACHES.get(alias) if isinstance(alias, str) else None
    backend = entry.get("BACKEND", "") if isinstance(entry, Mapping) else ""
    if backend in CACHES:
        return True
    try:
        kinds = {kind.__module__ + "." + kind.__qualname__ for kind in import_string(backend).__mro__}
    except (ImportError, AttributeError):
        return False
    return not kinds.isdisjoint(CACHES)


def first_location(cache: Mapping[str, Any]) -> Any:
    """Return the first server of an entry of CACHES: its primary."""
    location = cache.get("LOCATION", "")
    servers = location.replace(";", ",").split(",") if isinstance(location, str) else location
    return servers[0] if servers and isinstance(servers, (list, tuple)) else location


def node_urls(nodes: Any) -> list[Any]:
    """Return the URLs of the nodes that CLUSTER names: one, or a list of them."""
    return list(nodes) if nodes and isinstance(nodes, (list, tuple)) else [nodes]


def _cache_problems(where: str, cache: Mapping[str, Any]) -> Iterator[conf.Problem]:
    yield from _server_problems(f"{where}['LOCATION']", first_location(cache))
    options = cache.get("OPTIONS", {})
    if not isinstance(options, Mapping):
        wrong = f"{where}['OPTIONS'] is {conf.described_value(options)}; it must be a dict."
        yield conf.Problem("E003", wrong, "Leave it out if the cache has no options.")
    elif "SENTINELS" in options:
        yield from _sentinel_list_problems(f"{where}['OPTIONS']", options["SENTINELS"], text_ports=True)


def test_problems(where: str, test: Any) -> Iterator[conf.Problem]:
    """Yield the problems of the entry that tests use in the place of another."""
    if isinstance(test, Mapping):
        yield from _entry_problems(f"{where}['TEST']", test, for_tests=True)
    elif test is not None and not isinstance(test, bool):
        wrong = f"{where}['TEST'] is {conf.described_value(test)}; it must be True, False or a dict."
        yield conf.Problem("E006", wrong, "For instance {'URL': 'redis://localhost:6379/15'}, or {'EMBEDDED': True}.")


def _entry_problems(where: str, given: Mapping[str, Any], *, for_tests: bool = False) -> Iterator[conf.Problem]:
    chosen = [source for source in SOURCES if source in given]
    if len(chosen) != 1:
        hint = f"It has {' and '.join(chosen)}." if chosen else connection_options.source_hint(given)
        yield conf.Problem("E002", f"{where} must have exactly one of {', '.join(SOURCES)}.", hint)
        return
    source, value = chosen[0], given[chosen[0]]
    if source in ("URL", "CLUSTER"):
        beside = [str(option) for name, option in given.items() if str(name).upper() == "DB"]
        for url in node_urls(value) if source == "CLUSTER" else [value]:
            yield from url_problems(f"{where}['{source}']", url, beside, cluster=source == "CLUSTER")
    elif source == "CACHE" and is_redis_cache(value):
        yield from _cache_problems(f"CACHES[{value!r}]", settings.CACHES[value])
    elif source == "CACHE":
        yield conf.Problem(
            "E001", f"{where} names the cache {value!r}, which is not a Redis cache in CACHES.", _cache_hint()
        )
    elif source == "EMBEDDED":
        yield from _embedded_problems(where, value, for_tests=for_tests)
    yield from connection_options.option_problems(where, given, source)
    if source == "SENTINELS":
        yield from _sentinel_problems(where, given)


def url_problems(where: str, url: Any, beside: Sequence[str] = (), *, cluster: bool = False) -> Iterator[conf.Problem]:
    """Yield the problems of a URL, with the numbers of databases that are given ``beside`` it."""
    if wrong := list(_server_problems(where, url)):
        yield from wrong
        return
    parts = urlsplit(url)
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name not in (*OPTIONS, *TLS, *OF_OTHERS):
            yield conf.unknown(where, name, [*OPTIONS, *TLS])
    path = "" if parts.scheme == "unix" else parts.path.strip("/")
    databases = [unquote(path), *parse_qs(parts.query, keep_blank_values=True).get("db", [])]
    for database in filter(None, databases):
        yield from connection_options.database_problems(where, database, cluster=cluster)
    numbers = sorted({int(database) for database in (*databases, *beside) if database.isdecimal()})
    if len(numbers) > 1:
        listing = " and ".join(map(str, numbers))
        yield conf.Problem("E002", f"{where} and DB name different databases: {listing}.", "Leave one of them out.")


def _server_problems(where: str, url: Any) -> Iterator[conf.Problem]:
    if not isinstance(url, str) or not url:
        shown = conf.described_value(url) if url else repr(url)  # a dict may hold a password
        yield conf.Problem("E003", f"{where} is {shown}; it must be a URL.", "For instance 'redis://localhost:6379/0'.")
        return
    try:
        url.encode()  # fails for half of a surrogate pair
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        port_is_right = False
    if not port_is_right or parts.scheme not in SCHEMES or not (parts.netloc or parts.path):
        allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        yield conf.Problem("E003", f"{where} is {masked(url)!r}; it must be a server's URL.", f"Schemes: {allowed}.")


def _sentinel_problems(where: str, given: Mapping[str, Any]) -> Iterator[conf.Problem]:
    yield from _sentinel_list_problems(where, given["SENTINELS"])
    if not isinstance(given.get("SERVICE"), str) or not given["SERVICE"]:
        yield conf.Problem("E003", f"{where} needs a 'SERVICE': the name that the sentinels know the primary by.")
    if (inner := given.get("SENTINEL_KWARGS")) is not None:
        yield from connection_options.sentinel_option_problems(f"{where}['SENTINEL_KWARGS']", inner)


def _sentinel_list_problems(where: str, sentinels: Any, *, text_ports: bool = False) -> Iterator[conf.Problem]:
    try:
        pairs = [(host, int(port) if text_ports else port) for host, port in sentinels]
        are_right = [isinstance(host, str) and is_whole(port) and 0 < port < 65_536 for host, port in pairs]
    except (TypeError, ValueError):
        are_right = []
    if not are_right or not all(are_right):
        wrong = f"{where}['SENTINELS'] must be a list of (host, port), with whole numbers from 1 to 65535 as ports."
        yield conf.Problem("E003", wrong, "[('10.0.0.1', 26379)], for instance.")


def _embedded_problems(where: str, value: Any, *, for_tests: bool) -> Iterator[conf.Problem]:
    from redis_kit.core.embedded import server

    if value is not True:
        hint = "To do without it, give a URL instead."
        yield conf.Problem("E003", f"{where}['EMBEDDED'] is {value!r}; it can only be True.", hint)
    elif not for_tests and (reason := server.refusal()):
        yield conf.Problem("E003", f"{where}['EMBEDDED']: {reason}")


def _cache_hint() -> str:
    caches = ", ".join(repr(alias) for alias in settings.CACHES if is_redis_cache(alias))
    return f"Redis caches: {caches}." if caches else "Without a Redis cache, give the server: {'URL': 'redis://...'}."
