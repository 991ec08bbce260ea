import pytest

from redis_kit.throttling.values.masking import masked


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
