"""The link that the experiment with a fail-over cuts; the experiment itself takes 20 seconds and runs by hand."""

import contextlib

import pytest
import redis

from tests.chaos.locks.support.partition import Link
from tests.fixtures.process import client


def test_link_passes_bytes_until_it_is_cut(tcp_valkey):
    with contextlib.ExitStack() as ends:
        link = Link(tcp_valkey.port)
        ends.callback(link.stop)
        through = ends.enter_context(client(f"redis://127.0.0.1:{link.port}", socket_timeout=0.2))
        assert through.ping()
        link.set("blackhole")
        with pytest.raises(redis.TimeoutError):
            through.ping()
