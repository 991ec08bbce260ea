"""Connections, keys and memory for tests alone, in place of the project's. All ways to test a project use this."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any

from django.core.signals import setting_changed

from redis_kit.core import conf
from redis_kit.core.client.connection_options import test_problems, url_problems
from redis_kit.core.errors import ConfigurationError, RedisFailure

URL_VARIABLE = "REDIS_KIT_TEST_URL"
RUN_VARIABLE = "REDIS_KIT_TEST_RUN"  # tells the processes of one run to share a server, and leave its end to the first


class Isolation:
    """The set-up of the tests in one process.

    Each connection leads to the server for tests: that of its option ``TEST``, else ``REDIS_KIT_TEST_URL``, else an
    embedded server. Every test has its own prefix of keys. ``override_settings`` changes neither.
    """

    def __init__(self) -> None:
        self._depth, self._number = 0, 0
        self._used = False  # since the last test
        self._run, self._process = "", ""
        self._owner = True
        self._server: Any = None
        self._url: Callable[[], str] = self._default_url

    @property
    def prefix(self) -> str:
        """The prefix of the keys of the test that runs now."""
        return f"test-{self._run}-{self._process}-{self._number}"

    @property
    def url(self) -> str:
        """The URL of the server for tests, which starts if it does not run; "" before start()."""
        return self._url() if self._depth else ""

    def start(self, url: Callable[[], str] | None = None, *, lazy: bool = False) -> None:
        """Lead all connections to the server for tests, until as many calls of stop().

        ``url`` returns the server's URL, and is called if a connection needs it. Raises ConfigurationError
        if the environment names a wrong URL, or if it names no server and an embedded one can't be started. With
        ``lazy`` that server starts, or the error is raised, when ``REDIS_KIT`` is first read.
        """
        if not self._depth and url is None:
            url_of_environment()
        self._depth += 1
        if self._depth > 1:
            return
        self._url = url or self._default_url
        self._owner = RUN_VARIABLE not in os.environ
        self._run = os.environ.get(RUN_VARIABLE) or token_hex(4)
        self._process = token_hex(3)
        try:
            if lazy:
                self._forget()
            conf.substitute(self._settings)
            if not lazy:
                conf.configured()  # starts the server now, so that the processes of this one share it
        except BaseException:
            self._depth = 0
            conf.substitute(None)
            raise
        os.environ[RUN_VARIABLE] = self._run
        if not lazy:
            self.renew()

    def enter_worker(self) -> None:
        """Begin in a process that runs a part of the tests, forked or spawned. It gets its own prefixes."""
        if not self._depth:
            self.start()
        self._owner, self._process = False, token_hex(3)
        self.renew()

    def renew(self, *, if_used: bool = False) -> None:
        """Begin the next test: with a new prefix, and nothing remembered of the test before.

        With ``if_used`` it does nothing after a test that has not read ``REDIS_KIT``.
        """
        if if_used and not self._used:
            return
        if self._depth:
            self._number += 1
        self._forget()

    def stop(self) -> None:
        """Remove the keys, and lead the connections to the project's servers again."""
        self._depth -= 1
        if self._depth:
            return
        try:
            if self._owner and (self._used or self._number):
                self._remove_keys()
        finally:
            conf.substitute(None)
            self._forget()
            if self._owner:
                os.environ.pop(RUN_VARIABLE, None)
                self._stop_server()

    def _settings(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``REDIS_KIT`` for tests."""
        self._used = True
        connections = given.get("CONNECTIONS")
        if connections is None:
            connections = {"default": {}}
        if isinstance(connections, Mapping):
            connections = {alias: self._entry(entry) for alias, entry in connections.items()}
        return {**given, "PREFIX": self.prefix, "CONNECTIONS": connections}

    def _entry(self, entry: Any) -> Any:
        test = entry.get("TEST") if isinstance(entry, Mapping) else None
        if any(test_problems("", test)):
            return entry  # which names them
        if isinstance(test, Mapping):
            return {**test, "TEST": True}
        return entry if test is True else {"URL": self._url(), "TEST": True}

    def _default_url(self) -> str:
        if self._server is None and (url := os.environ.get(URL_VARIABLE)):
            return url
        if self._server is None:
            self._server = start_server()
            os.environ[URL_VARIABLE] = self._server.url
        return str(self._server.url)

    def _forget(self) -> None:
        """Drop leases, views that wait, clients, breakers, remembered refusals and all else that a test left behind."""
        from redis_kit.core.component import components

        with suppress(ConfigurationError):
            for component in components():
                component.forget()
        value = conf.configured()
        self._used = False  # what reads the setting from here on belongs to the next test
        # State that depends on REDIS_KIT is dropped as under override_settings(): see conf.on_change().
        setting_changed.send(sender=Isolation, setting="REDIS_KIT", value=value, enter=True)

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
            os.environ.pop(URL_VARIABLE, None)

    def _remove_keys(self) -> None:
        """Delete the keys of all tests of this run, and no others."""
        from redis_kit.core import connections
        from redis_kit.core.client import addresses

        servers: set[str] = set()
        for alias in addresses.aliases():
            with suppress(ConfigurationError, RedisFailure):  # a test may have stopped the server
                url = str(addresses.address(alias))
                if url in servers or (self._server is not None and url == self._server.url):
                    continue  # the keys end with it
                servers.add(url)
                client = connections.client(alias, "worker")
                for node in client.primaries() if hasattr(client, "primaries") else [client]:
                    _remove(node, f"test-{self._run}-*")


def url_of_environment() -> str:
    """Return ``REDIS_KIT_TEST_URL``, "" if it is not set. Raises ConfigurationError."""
    url = os.environ.get(URL_VARIABLE, "")
    for problem in url_problems(f"{URL_VARIABLE} in the environment", url) if url else ():
        raise ConfigurationError(problem.text)
    return url


def start_server() -> Any:
    """Start an embedded server for tests. Raises ConfigurationError that says what else may be done."""
    from redis_kit.core.embedded.server import EmbeddedServer, EmbeddedUnavailable

    try:
        return EmbeddedServer().start()
    except EmbeddedUnavailable as error:
        raise ConfigurationError(f"{error} For tests, {URL_VARIABLE} in the environment can name a server.") from error


def _remove(client: Any, pattern: str) -> None:
    cursor = b"0"
    while True:
        cursor, keys = client.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        if keys:
            client.batch([("UNLINK", key) for key in keys])  # apart, as keys of a Cluster have different slots
        if cursor == b"0":
            return


isolation = Isolation()
