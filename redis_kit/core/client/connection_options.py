"""The options of an entry of ``REDIS_KIT["CONNECTIONS"]``: one table, for the checks and for the docs."""

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import did_you_mean, similar


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


def option_problems(where: str, given: Mapping[Any, Any], source: str) -> Iterator[conf.Problem]:
    """Yield the options of an entry that do not exist beside its source, and their values of a wrong type."""
    allowed = names(*_GROUPS.get(source, ()))
    for name, value in given.items():
        if name in (source, TEST.name):
            continue
        if not isinstance(name, str) or name.lower() not in allowed:
            yield _unknown(where, name, source, allowed)
        else:
            yield from _wrong_value(where, name, value, cluster=source == "CLUSTER")


def sentinel_option_problems(where: str, given: Any) -> Iterator[conf.Problem]:
    """Yield the problems of SENTINEL_KWARGS."""
    if not isinstance(given, Mapping):
        kind = conf.described_value(given)
        yield conf.Problem("E003", f"{where} is {kind}; it must be a dict, such as {{'password': '...'}}.")
        return
    for name in given:
        if str(name).lower() not in OF_SENTINELS:
            listing = f"Allowed: {', '.join(OF_SENTINELS[:4])}, and for TLS {', '.join(names(TLS))}."
            hint = _belongs_elsewhere(name) or did_you_mean(name, OF_SENTINELS, listing)
            yield conf.Problem("E002", f"{where} has no option {name!r}.", hint)


def tls_problems(where: str, options: Mapping[str, Any], *, is_secure: bool, remedy: str) -> Iterator[conf.Problem]:
    """Yield the problems of a connection's options for TLS, in lower case. ``remedy`` says how to turn TLS on."""
    for name in filter(options.__contains__, names(TLS)):
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


def source_hint(given: Mapping[Any, Any]) -> str:
    """Return what to write in an entry that has no source."""
    sources = [option.name for option in SOURCES]
    upper = [str(name).upper() for name in given]
    for name in (*filter("BACKEND".__eq__, upper), *upper):  # of all, BACKEND says most
        if hint := _ELSEWHERE.get(name) or did_you_mean(name, sources):
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


def _wrong_value(where: str, name: str, value: Any, *, cluster: bool) -> Iterator[conf.Problem]:
    option = _ALL[name.upper()]
    if option.name in ("SERVICE", "SENTINEL_KWARGS"):
        return  # these have messages of their own
    if not conf.matches(value, option.kind):
        wanted, given = conf.describe(option.kind), conf.described_value(value)
        yield conf.Problem("E006", f"{where}['{name}'] is {given}; it must be {wanted}.")
    elif option.name == "DB":
        yield from database_problems(f"{where}['{name}']", str(value), cluster=cluster)


def database_problems(where: str, database: str, *, cluster: bool) -> Iterator[conf.Problem]:
    """Yield the problem of a database's number."""
    if not (database.isascii() and database.isdecimal()) or int(database) > 15 or (cluster and int(database)):
        allowed = "0 with Cluster" if cluster else "0 to 15"
        yield conf.Problem("E004", f"{where} names database {database!r}; allowed: {allowed}.")
