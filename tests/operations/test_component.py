"""The settings of operations."""

import pytest

from redis_kit.core.checks.configuration import check_settings


@pytest.mark.parametrize(
    ("options", "hint"), [({"SLOWW": 1}, "SLOW"), ({"SLOW": "1"}, "a number"), ({"SLOW": 0}, "0.001 to 60")]
)
def test_wrong_option_is_named_with_a_way_out(kit, options, hint):
    kit.options(OPERATIONS=options)
    (message,) = check_settings()
    assert hint in f"{message.msg} {message.hint}"
