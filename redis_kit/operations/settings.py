"""The settings of operations."""

from collections.abc import Iterator
from dataclasses import dataclass

from redis_kit.core.conf import Problem, Section

SHORTEST = 16  # characters of a token


@dataclass(frozen=True)
class OperationsSettings(Section):
    """The options of ``REDIS_KIT["OPERATIONS"]``."""

    name = "OPERATIONS"
    secrets = ("METRICS_TOKEN",)

    #: The bearer token of the page with metrics, 16 characters or more. Without it only users with the permission
    #: ``view_server`` see the page.
    METRICS_TOKEN: str = ""

    def problems(self) -> Iterator[Problem]:
        """Yield the problem of a token that can be guessed."""
        token = self.METRICS_TOKEN
        if token and not (len(token) >= SHORTEST and token.isascii() and token.isprintable() and " " not in token):
            yield Problem(
                "E030",
                f"REDIS_KIT['OPERATIONS']['METRICS_TOKEN'] must be {SHORTEST} or more printable ASCII characters, "
                "without spaces, or it can be guessed or can't be sent.",
                "Use the output of: python -c 'import secrets; print(secrets.token_urlsafe())'",
            )
