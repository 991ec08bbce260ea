"""``REDIS_KIT["CONNECTIONS"]``: the address of each alias, checked without importing a client."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.client import connection_options
from redis_kit.core.client.connection_options import OPTIONS, SCHEMES, TLS_OPTIONS, alias_missing, masked
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.settings import KitSettings

_warned: set[str] = set()  # aliases that tests use and that are not marked for tests


@dataclass(frozen=True)
class Address:
    """Where a server is: a URL, or a Sentinel service with the sentinels that know it.

    A ``cluster`` has the hosts and ports of its nodes that are asked first for all others.
    """

    url: str = ""
    cluster: tuple[tuple[str, int], ...] = ()
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    sentinel_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def username(self) -> str:
        """Return the user of the server's ACL, "" if only a credential provider knows it."""
        if self.options.get("credential_provider"):
            return ""
        return self.options.get("username") or unquote(urlsplit(self.url).username or "") or "default"

    @property
    def all_options(self) -> dict[str, Any]:
        """Return the options, with those of the URL."""
        return {**dict(parse_qsl(urlsplit(self.url).query)), **self.options}

    @property
    def is_secure(self) -> bool:
        """Tell whether the connection is one with TLS."""
        return self.url.startswith("rediss:") or bool(self.options.get("ssl"))

    def __str__(self) -> str:
        """Name the server for a message, without its password."""
        if self.sentinels:
            return (
                f"Sentinel service {self.service!r} of {', '.join(f'{host}:{port}' for host, port in self.sentinels)}"
            )
        return masked(self.url)


def aliases() -> dict[str, Any]:
    """Return the connections of this project: those it set, else ``default`` from the ``default`` cache."""
    connections = conf.configured().get("CONNECTIONS")
    return dict(connections) if isinstance(connections, Mapping) else {"default": {"CACHE": "default"}}


def address(alias: str) -> Address:
    """Return the address of an alias. Raises ConfigurationError, which names the problem and the options allowed."""
    conf.section(KitSettings)  # raises for a wrong option beside the connections
    connections = aliases()
    for problem in chain(
        connection_options.top_level_problems(),
        connection_options.none_given(),
        alias_missing(alias, connections),
        connection_options.alias_problems(alias, connections.get(alias)),
    ):
        raise ConfigurationError(problem.text)
    test = connections[alias].get("TEST") if conf.tests_run() else True
    server = _address(test if isinstance(test, Mapping) else connections[alias])
    for problem in _tls_problems(alias, server):
        raise ConfigurationError(problem.text)
    if not test and "EMBEDDED" not in connections[alias]:
        _warn_of_tests(alias, server)
    return server


def tls_problems() -> Iterator[conf.Problem]:
    """Yield the problems of options for TLS of all connections, if nothing else is wrong with them."""
    if any(connection_options.top_level_problems()):
        return
    for alias, entry in aliases().items():
        for each in (entry, entry.get("TEST")):
            if isinstance(each, Mapping) and "EMBEDDED" not in each:
                with suppress(Exception):  # of a cache that its backend can't use either
                    yield from _tls_problems(alias, _address(each))


def require_tests(alias: str) -> None:
    """Raise ConfigurationError, which says what to do, unless a connection leads to a server for tests."""
    server = address(alias)
    entry = aliases()[alias]
    test = entry.get("TEST")
    if test is True or (conf.tests_run() and (test or "EMBEDDED" in entry)):
        return
    raise ConfigurationError(
        f"The connection {alias!r} ({server}) is not marked for tests, so the jobs there are not run: they may be "
        f"those of the site. {_remedy(alias)}"
    )


def _tls_problems(alias: str, server: Address) -> Iterator[conf.Problem]:
    where = f"REDIS_KIT['CONNECTIONS'][{alias!r}]"
    yield from connection_options.tls_problems(
        where, server.all_options, is_secure=server.is_secure, remedy=connection_options.TURN_TLS_ON
    )
    of_sentinels = server.sentinel_options
    is_secure = bool(of_sentinels.get("ssl"))
    yield from connection_options.tls_problems(
        f"{where}['SENTINEL_KWARGS']", of_sentinels, is_secure=is_secure, remedy="Add 'ssl': True there."
    )


def _remedy(alias: str) -> str:
    return (
        "Set TEST_RUNNER = 'redis_kit.testing.runner.RedisKitRunner', inherit from RedisKitTestMixin, or use the "
        "fixture 'redis_kit' with pytest. If the server is for tests, set "
        f"REDIS_KIT['CONNECTIONS'][{alias!r}]['TEST'] = True."
    )


def _address(entry: Mapping[str, Any]) -> Address:
    given = dict(entry)
    if given.pop("EMBEDDED", False):
        from redis_kit.core.embedded import server

        return Address(url=server.shared_url())
    if "CACHE" in given:
        return _from_cache(given["CACHE"])
    if "CLUSTER" in given:
        urls = connection_options.node_urls(given.pop("CLUSTER"))
        nodes = tuple((parts.hostname or "localhost", parts.port or 6379) for parts in map(urlsplit, urls))
        return Address(url=_plain(urls[0]), cluster=nodes, options=_client_options(given))
    if "SENTINELS" in given:
        return Address(
            sentinels=tuple((host, port) for host, port in given["SENTINELS"]),
            service=given["SERVICE"],
            options=_client_options(given, "ssl", *OPTIONS),
            sentinel_options=_client_options(given.get("SENTINEL_KWARGS") or {}, *connection_options.OF_SENTINELS),
        )
    return Address(url=_plain(given.pop("URL")), options=_client_options(given))


def _warn_of_tests(alias: str, server: Address) -> None:
    if alias not in _warned:
        _warned.add(alias)
        warnings.warn(
            f"Tests use the connection {alias!r} ({server}), which is not marked for tests: they read and write its "
            f"data. {_remedy(alias)}",
            RuntimeWarning,
            stacklevel=2,
        )


def _from_cache(alias: str) -> Address:
    entry = settings.CACHES[alias]
    first = connection_options.first_location(entry)
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
    in_url |= {name: value for name, value in parse_qsl(parts.query) if name in (*OPTIONS, *TLS_OPTIONS)}
    if "db" in in_url:
        extra["db"] = int(in_url.pop("db"))
    if SCHEMES.get(parts.scheme) == "rediss":
        extra["ssl"] = True
    return Address(
        sentinels=tuple((host, int(port)) for host, port in options["SENTINELS"]),
        service=parts.hostname or "",
        options=in_url | extra,
        sentinel_options=_client_options(options.get("SENTINEL_KWARGS") or {}, *connection_options.OF_SENTINELS),
    )


def _plain(url: str) -> str:
    """Return a URL with the scheme that redis-py knows, and without the options for other clients."""
    scheme, rest = url.split(":", 1)
    rest, _, query = rest.partition("?")
    allowed = [part for part in query.split("&") if unquote(part.partition("=")[0]) in (*OPTIONS, *TLS_OPTIONS)]
    return f"{SCHEMES.get(scheme, scheme)}:{rest}{'?' if allowed else ''}{'&'.join(allowed)}"


def _client_options(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    lowered = {str(name).lower(): value for name, value in given.items()}
    return {name: value for name, value in lowered.items() if name in (names or OPTIONS) or name in TLS_OPTIONS}
