"""A connection on which a server sends what is published."""

from collections import deque
from collections.abc import Iterable
from time import monotonic
from typing import Any

from redis.exceptions import ResponseError

PING = 1.0  # seconds of silence after which the server is asked whether it still is there


class Session:
    """A connection to one server, the commands without a reply yet, and its channels."""

    def __init__(self, client: Any) -> None:
        self.connection = client.dedicated()
        self.connection.connect()
        self.pending: deque[tuple[str, str]] = deque()
        self.channels: set[str] = set()
        self.heard = self.asked = monotonic()

    def send(self, command: str, channel: str = "") -> None:
        """Send a command. Its reply comes among the messages."""
        self.connection.send_command(*([command, channel] if channel else [command]), check_health=False)
        self.pending.append((command, channel))

    def read(self) -> Iterable[Any]:
        """Yield what has come: messages, replies, and errors in place of replies."""
        while self.connection.can_read(timeout=0):
            self.heard = monotonic()
            try:
                yield self.connection.read_response(disconnect_on_error=False)
            except ResponseError as error:
                yield error

    def check(self) -> None:
        """Send a PING after a silence. Raises TimeoutError if there was no answer to the last one."""
        now = monotonic()
        if now - self.heard < PING or now - self.asked < PING:
            return
        if ("PING", "") in self.pending:
            raise TimeoutError("no answer to PING")
        self.asked = now
        self.send("PING")
