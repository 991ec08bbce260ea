"""Sentinels with a password and TLS, and a primary with others: configured, or named as what is wrong."""

import asyncio
import gc
import shutil
import subprocess
import warnings

import pytest

from redis_kit.core import connections
from redis_kit.core.embedded.server import Guarded
from redis_kit.core.errors import ConfigurationError, PermissionDenied
from tests.fixtures.process import PortTaken, client, free_port, on_free_port, wait_for
from tests.fixtures.servers import without_redis

pytestmark = pytest.mark.once
SERVICE = "guarded"
TLS = """
tls-replication yes
tls-auth-clients no
tls-cert-file {0}/cert
tls-key-file {0}/key
tls-ca-cert-file {0}/cert
"""


class Process:
    """A server or Sentinel with a configuration file."""

    def __init__(self, folder, text, *arguments, secure, password):
        self.options = {"password": password} | ({"ssl_ca_certs": str(folder / "cert")} if secure else {})
        self.scheme, self.folder, self.text, self.arguments = "rediss" if secure else "redis", folder, text, arguments
        self.secure = secure
        self.guarded = on_free_port(self._start_on)

    def _start_on(self, port):
        config = self.folder / f"{port}.conf"
        ports = f"port 0\ntls-port {port}\n{TLS.format(self.folder)}" if self.secure else f"port {port}\n"
        config.write_text(f"bind 127.0.0.1\ndir {self.folder}\n{ports}{self.text}")
        guarded = Guarded([shutil.which("redis-server"), str(config), *self.arguments], folder=self.folder)
        self.port = port
        wait_for(lambda: self._is_up(guarded))
        return guarded

    def _is_up(self, guarded):
        if guarded.poll() is not None:
            raise PortTaken(guarded.log_tail())
        with client(f"{self.scheme}://127.0.0.1:{self.port}", **self.options) as connection:
            return connection.ping()


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def guarded(request, tmp_path):
    """A primary and one Sentinel, each with a password of its own; gives the Sentinel's port and the TLS options."""
    if shutil.which("redis-server") is None:
        without_redis()
    secure, folder = request.param, tmp_path
    if secure:
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
        files = ["-keyout", folder / "key", "-out", folder / "cert"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *files, *subject]
        subprocess.run(command, check=True, capture_output=True)
    (folder / "primary").mkdir()
    primary = Process(folder, 'requirepass top\nsave ""\n', secure=secure, password="top")
    watching = f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1\nsentinel auth-pass {SERVICE} top\n"
    sentinel = Process(folder, f"{watching}requirepass watch\n", "--sentinel", secure=secure, password="watch")
    options = {"SSL_CA_CERTS": str(folder / "cert")} if secure else {}
    yield sentinel.port, options
    for process in (sentinel, primary):
        process.guarded.stop()


def connected(settings, port, options, **more):
    secure = {"SSL": True} if options else {}
    given = {"SENTINELS": [("127.0.0.1", port)], "SERVICE": SERVICE, "PASSWORD": "top", **secure, **options, **more}
    settings.REDIS_KIT = {"CONNECTIONS": {"default": given}, "CONNECT_TIMEOUT": 2, "READ_TIMEOUT": 2}


def pings():
    """Ask through both clients."""

    async def aping():
        return await connections.aclient().call("PING")

    return connections.client().call("PING"), asyncio.run(aping())


def test_sentinels_with_a_password_and_tls(guarded, settings):
    port, options = guarded
    of_sentinels = {"password": "watch"} | ({"ssl": True} if options else {})
    of_sentinels |= {name.lower(): value for name, value in options.items()}
    connected(settings, port, options, SENTINEL_KWARGS=of_sentinels)
    assert pings() == (b"PONG", b"PONG")


def test_sentinels_of_a_cache_with_a_password_and_tls(guarded, settings):
    port, options = guarded
    lowered = {name.lower(): value for name, value in options.items()}
    of_sentinels = {"password": "watch"} | ({"ssl": True} if options else {}) | lowered
    settings.CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redi{'s' if not options else 'ss'}://:top@{SERVICE}/0",
            "OPTIONS": {
                "SENTINELS": [("127.0.0.1", port)],
                "SENTINEL_KWARGS": of_sentinels,
                "CONNECTION_POOL_KWARGS": lowered,
            },
        }
    }
    settings.REDIS_KIT = {"CONNECT_TIMEOUT": 2, "READ_TIMEOUT": 2}
    assert pings() == (b"PONG", b"PONG")


def test_refusal_of_the_sentinels_is_named(guarded, settings):
    port, options = guarded
    secure = {"ssl": True, "ssl_ca_certs": options["SSL_CA_CERTS"]} if options else {}
    for password in ({}, {"password": "guess"}):
        connected(settings, port, options, SENTINEL_KWARGS=password | secure)
        with pytest.raises(PermissionDenied, match=r"The Sentinels refused access .*SENTINEL_KWARGS") as caught:
            connections.client().call("PING")
        assert "guess" not in str(caught.value)

        async def main():
            with pytest.raises(PermissionDenied, match="The Sentinels refused access"):
                await connections.aclient().call("PING")

        with warnings.catch_warnings():
            # The client library closes the refused connection in TLS's own time, and this loop ends before.
            warnings.simplefilter("ignore", ResourceWarning)
            asyncio.run(main())
            gc.collect()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"SENTINEL_KWARGS": "secret"}, "must be a dict"),
        ({"SENTINEL_KWARGS": {"passwort": "x"}}, "no option 'passwort'. Did you mean 'password'"),
        ({"PASWORD": "x"}, "no option 'PASWORD'. Did you mean 'PASSWORD'"),
    ],
)
def test_misspelt_option_is_named(settings, options, said):
    connected(settings, free_port(), {}, **options)
    with pytest.raises(ConfigurationError, match=said):
        connections.client()
