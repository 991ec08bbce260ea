"""Each page that a real server answered is counted, or counted as dropped."""

import pytest

from tests.chaos.pageviews import http_load
from tests.fixtures.proxy import Proxy


@pytest.mark.parametrize(
    ("kind", "requests", "outage"), [("uvicorn", 240, 0.0), ("preload", 1200, 0.7)], ids=["uvicorn", "preload, outage"]
)
def test_each_view_is_counted_or_dropped(kit, tmp_path, tcp_valkey, kind, requests, outage):
    kit.connect(tcp_valkey.connection)
    proxy = Proxy(tcp_valkey.port)
    try:
        outcome = http_load.run(proxy, tmp_path, requests, kind, outage=outage)
    finally:
        proxy.stop()
    assert outcome.answered == requests
    assert outcome.views + sum(outcome.lost.values()) == requests
    assert outcome.lost.keys() >= {"overflow", "waiting"}
    if not outage:
        assert outcome.views == requests
