import pytest

from redis_kit.throttling.identity import masked, without_secrets


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("ip:203.0.113.7", "ip:203.0.113.***"),
        ("203.0.113.7", "203.0.113.***"),
        ("ip:2001:db8:1:2::/64", "ip:2001:db8:***"),
        ("2001:db8::1", "2001:db8:***"),
        ("user:4711", "user:471***"),
        ("user:42", "user:***"),
        ("alice", "ali***"),
        ("bob", "***"),
        ("user:alice@example.com", "user:ali***"),
        ("header:X-Token:abc", "header:X-T***"),
        ("", "***"),
    ],
)
def test_telling_part_is_hidden_and_stays_so_when_it_is_masked_again(identity, shown):
    assert masked(identity) == shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    ("identity", "stored"),
    [
        ("header:sk_live_4711", "header:sk_***"),
        ("header:Bearer sk_live_4711", "header:Bea***"),
        ("get:4711", "get:471***"),
        ("ip:203.0.113.7 post:joe@example.com", "ip:203.0.113.7 post:joe***"),
        ("ip:203.0.113.7 header: post:x", "ip:203.0.113.7 header: po***"),
        ("header:", "header:"),
        ("ip:203.0.113.7", "ip:203.0.113.7"),
        ("forget:me", "forget:me"),
        ("header:key\nsk_live_4711", "header:key***"),
    ],
)
def test_values_that_clients_send_are_masked_to_the_end(identity, stored):
    assert without_secrets(identity) == stored
