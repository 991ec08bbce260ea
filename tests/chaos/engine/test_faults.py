"""A server that reads a long file on a busy machine comes back."""

import pytest

from tests.chaos.engine import faults


class SlowServer:
    """A server whose first starts take too long."""

    def __init__(self, slow: int) -> None:
        self.slow, self.starts, self.runs = slow, 0, True

    def stop(self) -> None:
        self.runs = False

    def start(self) -> None:
        self.starts += 1
        if self.starts <= self.slow:
            raise AssertionError("not within 15 s")
        self.runs = True


def test_restart_tries_again_while_a_server_starts_slowly():
    server = SlowServer(slow=faults.TRIES - 1)
    faults.restart(server)
    assert server.runs
    assert server.starts == faults.TRIES


def test_restart_fails_with_a_server_that_never_starts():
    server = SlowServer(slow=100)
    with pytest.raises(AssertionError, match="not within 15 s"):
        faults.restart(server)
    assert server.starts == faults.TRIES
