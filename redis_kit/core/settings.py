"""The options at the top of ``REDIS_KIT``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Any

from redis_kit.core.conf import Problem, Section

MOST_PROXIES = 32
_HEADER = re.compile(r"(?!HTTP_)[!#$%&'*+.^_`|~0-9a-z-]+", re.IGNORECASE)  # a token (RFC 9110)


@dataclass(frozen=True)
class KitSettings(Section):
    """The options at the top of ``REDIS_KIT``, beside the components' sections."""

    name = ""
    ranges = {
        "CONNECT_TIMEOUT": (0.01, 10),
        "READ_TIMEOUT": (0.01, 10),
        "POOL_TIMEOUT": (0.01, 60),
        "MAX_CONNECTIONS": (2, 10_000),  # one that may wait on the server, and one for others
    }

    secrets = ("HASH_KEY",)
    examples = {"CONNECTIONS": "Write {'default': {'URL': 'redis://localhost:6379/0'}}."}

    #: The beginning of every key: a short word for this project, if several share a server.
    PREFIX: str = "rk"
    #: The servers, by alias. ``default`` is used unless another alias is given; without this option it is the server of
    #: the ``default`` cache.
    CONNECTIONS: Mapping[str, Any] | None = None
    #: Seconds to open a connection in a request.
    CONNECT_TIMEOUT: float = 0.25
    #: Seconds to wait for a reply in a request.
    READ_TIMEOUT: float = 0.25
    #: Connections of one process, or event loop, to one server. If all are in use, calls wait for one.
    MAX_CONNECTIONS: int = 50
    #: Seconds that a call in a request waits for a connection if all are in use.
    POOL_TIMEOUT: float = 2.0
    #: Dotted paths of your own components.
    EXTRA_COMPONENTS: list[str] | tuple[str, ...] = ()
    #: The proxies whose forwarded header is believed: their number, or their networks.
    TRUSTED_PROXIES: int | list[str] | tuple[str, ...] = ()
    #: The header in which those proxies name the client.
    FORWARDED_HEADER: str = "X-Forwarded-For"
    #: The secret of hashed identities, 32 bytes or more. Without it, one is derived from ``SECRET_KEY``. Before you
    #: change that, set this option to the old one, or all bans and counts begin again.
    HASH_KEY: str = ""
    #: True records spans of enqueued calls and of jobs by the API of OpenTelemetry.
    TRACING: bool = False

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of the prefix, the hash key and the proxies; ``client.addresses`` checks connections."""
        prefix = self.PREFIX
        if not prefix.isprintable() or not 0 < len(prefix.encode()) <= 64 or set(prefix) & set(" {}*?[]\\%"):
            yield Problem(
                "E005",
                f"REDIS_KIT['PREFIX'] is {prefix!r}; it must be 1 to 64 bytes of printable text without space, "
                "{ } * ? [ ] \\ %.",
                "Use a short word for this project, such as 'shop'.",
            )
        if self.HASH_KEY and not (self.HASH_KEY.isprintable() and len(self.HASH_KEY.strip().encode()) >= 32):
            yield Problem(
                "E009",
                "REDIS_KIT['HASH_KEY'] must be 32 bytes or more of printable text, not counting spaces at its ends, or "
                "hashed identities could be guessed.",
                "Use 32 random bytes or more, or leave it out to derive it from SECRET_KEY.",
            )
        if self.TRACING and not find_spec("opentelemetry"):
            wrong = "REDIS_KIT['TRACING'] is True, and the package opentelemetry-api is not installed."
            yield Problem("E031", wrong, "pip install 'django-redis-kit[opentelemetry]'")
        yield from _proxy_problems(self.TRUSTED_PROXIES)
        if not _HEADER.fullmatch(self.FORWARDED_HEADER):
            yield Problem(
                "E008",
                f"REDIS_KIT['FORWARDED_HEADER'] is {self.FORWARDED_HEADER!r}, which is not the name of a header.",
                "Write the name as the proxy sends it, such as 'X-Forwarded-For'.",
            )


def _proxy_problems(trusted: int | Sequence[str]) -> Iterator[Problem]:
    place = "REDIS_KIT['TRUSTED_PROXIES']"
    if isinstance(trusted, int):
        if not 0 <= trusted <= MOST_PROXIES:
            yield Problem("E008", f"{place} is {trusted}; a number of proxies is between 0 and {MOST_PROXIES}.")
        return
    for text in trusted:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            yield Problem("E008", f"{place} holds {text!r}, which is not a network.", "Write it as '10.0.0.0/8'.")
        else:
            if network.prefixlen == 0:
                yield Problem(
                    "E008",
                    f"{place} holds {text!r}: every client is trusted, so every client can choose its address.",
                    "Write the networks of your proxies, such as '10.0.0.0/8', or their number.",
                )
