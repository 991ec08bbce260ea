"""The options of an entry of ``REDIS_KIT["CONNECTIONS"]``: one table, for the docs too, and the problems of them."""

import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from django.conf import settings
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import did_you_mean, similar
from redis_kit.core.values.numbers import is_whole


class ConnectionOption(NamedTuple):
    """One option of an entry: its name, the type of its value, and a sentence on what it does."""

    name: str
    kind: Any
    text: str


#: An entry has exactly one of these. It says where the server is.
SOURCES = (
    ConnectionOption("URL", str, "The server: redis://, rediss:// (TLS), unix://, valkey:// or valkeys://."),
    ConnectionOption("CACHE", str, "An alias of CACHES: the server, credentials and TLS options of that cache."),
    ConnectionOption("SENTINELS", list | tuple, "The Sentinels as (host, port) pairs; SERVICE names the primary."),
    ConnectionOption(
        "CLUSTER", str | list | tuple, "The URL of a node of a Cluster, or of several; the others are discovered."
    ),
    ConnectionOption("EMBEDDED", bool, "True starts a temporary server with this process, for development and tests."),
)
#: Options of the client, beside URL, CLUSTER and SENTINELS. A URL may have them as its query, in lower case.
CLIENT = (
    ConnectionOption("DB", int | str, "The number of the database, 0 to 15; only 0 with a Cluster."),
    ConnectionOption("USERNAME", str | None, "The user of the server's ACL."),
    ConnectionOption("PASSWORD", str | int | bytes | None, "The password of the user, or of requirepass."),
    ConnectionOption("CREDENTIAL_PROVIDER", Any, "A CredentialProvider of redis-py, in place of user and password."),
    ConnectionOption("CLIENT_NAME", str | None, "The name that CLIENT LIST shows for the connections."),
    ConnectionOption("SOCKET_KEEPALIVE", bool | None, "True turns on keep-alive packets of TCP."),
)
#: Options for TLS, beside URL, CLUSTER and SENTINELS. They are redis-py's, which needs rediss:// or SSL.
TLS = (
    ConnectionOption("SSL_CA_CERTS", Any, "The file of the certificate authorities that are trusted."),
    ConnectionOption(
        "SSL_CA_PATH", Any, "A folder with files of certificate authorities. Async code needs redis-py 7.2."
    ),
    ConnectionOption("SSL_CA_DATA", Any, "The certificates of the authorities as text."),
    ConnectionOption(
        "SSL_CERT_REQS", Any, "Whether the server's certificate is checked: required, optional or none, or None."
    ),
    ConnectionOption("SSL_CHECK_HOSTNAME", bool | str, "Whether the certificate must be for the host of the URL."),
    ConnectionOption("SSL_CERTFILE", Any, "The file of this client's certificate."),
    ConnectionOption("SSL_KEYFILE", Any, "The file of this client's private key."),
    ConnectionOption(
        "SSL_PASSWORD", str | bytes | None, "The password of the private key. Async code needs redis-py 7.2."
    ),
    ConnectionOption("SSL_MIN_VERSION", Any, "The oldest version of TLS, an ssl.TLSVersion."),
    ConnectionOption("SSL_CIPHERS", str | None, "The ciphers that are allowed, as OpenSSL writes them."),
    ConnectionOption(
        "SSL_INCLUDE_VERIFY_FLAGS",
        Any,
        "Flags of the ssl module to set for the check of certificates. Needs redis-py 7.",
    ),
    ConnectionOption("SSL_EXCLUDE_VERIFY_FLAGS", Any, "Flags of the ssl module to clear. Needs redis-py 7."),
)
#: Options beside SENTINELS only.
SENTINEL = (
    ConnectionOption("SERVICE", str, "The name that the Sentinels know the primary by. Required."),
    ConnectionOption("SENTINEL_KWARGS", Mapping, "Options of the Sentinels' own connections, in lower case."),
    ConnectionOption("SSL", bool | None, "True connects to the primary by TLS. Elsewhere rediss:// says so."),
)


#: An option of every entry, for tests.
TEST = ConnectionOption(
    "TEST",
    bool | Mapping,
    "True says that tests may use this server. A dict is an entry that tests use in its place.",
)


def names(*groups: tuple[ConnectionOption, ...]) -> tuple[str, ...]:
    """Return the names of groups of options in lower case, as redis-py has them."""
    return tuple(option.name.lower() for group in groups for option in group)


#: Options inside SENTINEL_KWARGS, in lower case.
OF_SENTINELS = ("username", "password", "credential_provider", "ssl", *names(TLS))
_GROUPS = {"URL": (CLIENT, TLS), "CLUSTER": (CLIENT, TLS), "SENTINELS": (SENTINEL, CLIENT, TLS)}
_ALL = {option.name: option for group in (SOURCES, SENTINEL, CLIENT, TLS) for option in group}
_NO_TLS = (*names(SENTINEL), *names(CLIENT))
TURN_TLS_ON = "Begin the URL with rediss://. Beside SENTINELS the option is SSL."
# Names of other clients, and of other settings, with the place where it is said here.
_ELSEWHERE = {
    **dict.fromkeys(("SOCKET_TIMEOUT", "TIMEOUT"), "Set REDIS_KIT['READ_TIMEOUT'], which holds for all connections."),
    "HEALTH_CHECK_INTERVAL": "Leave it out: before each use, the kit looks whether the server has closed a connection.",
    "SOCKET_CONNECT_TIMEOUT": "Set REDIS_KIT['CONNECT_TIMEOUT'], which holds for all connections.",
    "KEY_PREFIX": "Set REDIS_KIT['PREFIX'], which holds for all connections.",
    **dict.fromkeys(
        ("HOST", "PORT", "LOCATION", "SERVER"), "Write the address as 'URL': 'redis://host:6379/0', also with a port."
    ),
    "BACKEND": "This is an entry of CACHES. Name that cache here, {'CACHE': 'default'}, or give the 'URL'.",
    **dict.fromkeys(("SERVICE_NAME", "MASTER", "MASTER_NAME"), "The option is 'SERVICE', beside 'SENTINELS'."),
    **dict.fromkeys(
        ("OPTIONS", "CONNECTION_POOL_KWARGS", "CONNECTION_KWARGS", "REDIS_CLIENT_KWARGS", "CLIENT_KWARGS"),
        "Write the options beside the server, in capitals: {'URL': 'redis://...', 'PASSWORD': '...'}.",
    ),
    **dict.fromkeys(("SSL", "TLS", "USE_TLS"), TURN_TLS_ON),
}
EXAMPLE = "{'default': {'URL': 'redis://...'}}"
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_CERT_REQS = ("required", "optional", "none")
SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
SOURCE_NAMES = tuple(sorted(option.name for option in SOURCES))
OPTION_NAMES = (*SOURCE_NAMES, "LOCATION")  # of a server, where aliases are expected
OPTIONS, TLS_OPTIONS = names(CLIENT), names(TLS)
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
        if name not in sections and (problem := misplaced_option(name, value)):
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
    near = did_you_mean(alias, filter(lambda name: isinstance(name, str), connections))
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
        yield conf.Problem("E002", f"{where} is {kind}; it must be a dict with one of {', '.join(SOURCE_NAMES)}.", hint)
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
    chosen = [source for source in SOURCE_NAMES if source in given]
    if len(chosen) != 1:
        hint = f"It has {' and '.join(chosen)}." if chosen else _source_hint(given)
        yield conf.Problem("E002", f"{where} must have exactly one of {', '.join(SOURCE_NAMES)}.", hint)
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
    yield from _option_problems(where, given, source)
    if source != "SENTINELS":
        return
    yield from _sentinel_list_problems(where, value)
    if not isinstance(given.get("SERVICE"), str) or not given["SERVICE"]:
        yield conf.Problem("E003", f"{where} needs a 'SERVICE': the name that the sentinels know the primary by.")
    if (inner := given.get("SENTINEL_KWARGS")) is not None:
        yield from _sentinel_option_problems(f"{where}['SENTINEL_KWARGS']", inner)


def url_problems(where: str, url: Any, beside: Sequence[str] = (), *, cluster: bool = False) -> Iterator[conf.Problem]:
    """Yield the problems of a URL, with the numbers of databases that are given ``beside`` it."""
    if wrong := list(_server_problems(where, url)):
        yield from wrong
        return
    parts = urlsplit(url)
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name not in (*OPTIONS, *TLS_OPTIONS, *OF_OTHERS):
            yield conf.unknown(where, name, [*OPTIONS, *TLS_OPTIONS])
    path = "" if parts.scheme == "unix" else parts.path.strip("/")
    databases = [unquote(path), *parse_qs(parts.query, keep_blank_values=True).get("db", [])]
    for database in filter(None, databases):
        yield from _database_problems(where, database, cluster=cluster)
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


def _option_problems(where: str, given: Mapping[Any, Any], source: str) -> Iterator[conf.Problem]:
    """Yield the options of an entry that do not exist beside its source, and their values of a wrong type."""
    allowed = names(*_GROUPS.get(source, ()))
    for name, value in given.items():
        if name in (source, TEST.name):
            continue
        if not isinstance(name, str) or name.lower() not in allowed:
            yield _unknown(where, name, source, allowed)
            continue
        option = _ALL[name.upper()]
        if option.name in ("SERVICE", "SENTINEL_KWARGS"):
            continue  # these have messages of their own
        if not conf.matches(value, option.kind):
            wanted, kind = conf.describe(option.kind), conf.described_value(value)
            yield conf.Problem("E006", f"{where}['{name}'] is {kind}; it must be {wanted}.")
        elif option.name == "DB":
            yield from _database_problems(f"{where}['{name}']", str(value), cluster=source == "CLUSTER")


def _sentinel_option_problems(where: str, given: Any) -> Iterator[conf.Problem]:
    """Yield the problems of SENTINEL_KWARGS."""
    if not isinstance(given, Mapping):
        kind = conf.described_value(given)
        yield conf.Problem("E003", f"{where} is {kind}; it must be a dict, such as {{'password': '...'}}.")
        return
    for name in given:
        if str(name).lower() not in OF_SENTINELS:
            listing = f"Allowed: {', '.join(OF_SENTINELS[:4])}, and for TLS {', '.join(TLS_OPTIONS)}."
            hint = _belongs_elsewhere(name) or did_you_mean(name, OF_SENTINELS, listing)
            yield conf.Problem("E002", f"{where} has no option {name!r}.", hint)


def tls_problems(where: str, options: Mapping[str, Any], *, is_secure: bool, remedy: str) -> Iterator[conf.Problem]:
    """Yield the problems of a connection's options for TLS, in lower case. ``remedy`` says how to turn TLS on."""
    for name in filter(options.__contains__, TLS_OPTIONS):
        value, option = options[name], f"{where}['{name.upper()}']"
        if not is_secure:
            yield conf.Problem("E002", f"{option} is set, and the connection is one without TLS.", remedy)
        elif name in _FILES and isinstance(value, (str, os.PathLike)) and not Path(value).exists():
            yield conf.Problem("E006", f"{option} is {value!r}, which does not exist on this machine.")
        elif name == "ssl_min_version" and not isinstance(value, ssl.TLSVersion | None):
            wrong = f"{option} is {value!r}; it must be a version of the module ssl."
            yield conf.Problem("E006", wrong, "For instance ssl.TLSVersion.TLSv1_3.")
        elif name == "ssl_cert_reqs" and not isinstance(value, ssl.VerifyMode | None) and value not in _CERT_REQS:
            yield conf.Problem("E006", f"{option} is {value!r}; it must be one of {', '.join(_CERT_REQS)}.")


def _source_hint(given: Mapping[Any, Any]) -> str:
    """Return what to write in an entry that has no source."""
    upper = [str(name).upper() for name in given]
    for name in (*filter("BACKEND".__eq__, upper), *upper):  # of all, BACKEND says most
        if hint := _ELSEWHERE.get(name) or did_you_mean(name, SOURCE_NAMES):
            return hint
    return "For instance {'URL': 'redis://localhost:6379/0'}."


def misplaced_option(name: Any, value: Any) -> conf.Problem | None:
    """Return the problem of a name at the top of ``REDIS_KIT`` that belongs to connections; None for other names."""
    upper, wrong = str(name).upper(), f"REDIS_KIT has no option {name!r}."
    if upper in ("SENTINELS", "SERVICE"):
        return _written(wrong, "{'SENTINELS': [('host', 26379)], 'SERVICE': '...'}")
    if upper in ("CACHE", "EMBEDDED"):
        return _written(wrong, f"{{'{upper}': {'True' if upper == 'EMBEDDED' else repr('default')}}}")
    if upper == "CLUSTER":
        return _written(wrong, "{'CLUSTER': 'redis://...'}")
    if upper in ("URL", "URI", "LOCATION", "HOST", "PORT", "SERVER"):
        return _written(wrong, "{'URL': 'redis://host:6379/0'}")
    if upper in _ALL:
        return conf.Problem("E002", wrong, f"It goes into an entry: REDIS_KIT['CONNECTIONS']['default']['{upper}'].")
    if upper in ("SOCKET_TIMEOUT", "SOCKET_CONNECT_TIMEOUT"):
        return conf.Problem("E002", wrong, _ELSEWHERE[upper])
    if isinstance(value, Mapping):
        if similar(name, conf.options(KitSettings))[:1] == ["CONNECTIONS"]:
            return conf.Problem("E002", wrong, f"Did you mean 'CONNECTIONS'? Write 'CONNECTIONS': {EXAMPLE}.")
        if any(option.name in value for option in SOURCES):
            return _written(wrong, "{...}", str(name))
    return None


def _written(wrong: str, entry: str, alias: str = "default") -> conf.Problem:
    return conf.Problem("E002", wrong, f"Write REDIS_KIT = {{'CONNECTIONS': {{{alias!r}: {entry}}}}}.")


def _unknown(where: str, name: Any, source: str, allowed: tuple[str, ...]) -> conf.Problem:
    wrong = f"{where} has no option {name!r}."
    if not allowed:
        return conf.Problem("E002", wrong, f"No option is allowed beside {source}.")
    plain = [option.upper() for option in _NO_TLS if option in allowed]
    listing = f"Allowed beside {source}: {', '.join(plain)}, and for TLS {', '.join(option.name for option in TLS)}."
    upper = [option.upper() for option in allowed]
    return conf.Problem("E002", wrong, _belongs_elsewhere(name) or did_you_mean(name, upper, listing))


def _belongs_elsewhere(name: Any) -> str:
    wanted = str(name).upper()
    if wanted in conf.options(KitSettings):
        return "It is an option of REDIS_KIT itself, not of a connection."
    if wanted.startswith("SENTINEL_") and (inner := wanted.removeprefix("SENTINEL_").lower()) in OF_SENTINELS:
        return f"It goes into 'SENTINEL_KWARGS': {{'{inner}': ...}}."
    return _ELSEWHERE.get(wanted, "")


def _database_problems(where: str, database: str, *, cluster: bool) -> Iterator[conf.Problem]:
    """Yield the problem of a database's number."""
    if not (database.isascii() and database.isdecimal()) or int(database) > 15 or (cluster and int(database)):
        allowed = "0 with Cluster" if cluster else "0 to 15"
        yield conf.Problem("E004", f"{where} names database {database!r}; allowed: {allowed}.")
