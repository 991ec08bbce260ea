"""Each client of a site gets each message once, over restarts of the site and of Redis."""

import pytest

from tests.chaos.mailbox import streams

pytestmark = pytest.mark.alone(15)


def test_each_client_gets_each_message_once():
    streams.run(streams.Plan(60, 12)).check()
