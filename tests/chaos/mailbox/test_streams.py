"""Each client of a site gets each message once, over restarts of the site and of Redis."""

import pytest

from tests.chaos.bloom.kill_loop import durable
from tests.chaos.mailbox import streams
from tests.fixtures.kit import Kit

pytestmark = pytest.mark.alone(15)


def test_each_client_gets_each_message_once(settings, tmp_path):
    server = durable(tmp_path / "data")
    kit = Kit(server, settings)
    try:
        outcome = streams.run(server, settings.REDIS_KIT, 60, 12)
    finally:
        kit.close()
        server.stop()
    assert outcome.wrong == []
    assert outcome.connections < streams.MOST_CONNECTIONS
