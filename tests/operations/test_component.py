"""The settings of operations."""

import pytest

from redis_kit.core.checks.configuration import check_settings


@pytest.mark.parametrize(
    ("options", "hint"), [({"METRICS_TOKN": "x"}, "METRICS_TOKEN"), ({"METRICS_TOKEN": 1}, "must be text")]
)
def test_wrong_option_is_named_with_a_way_out(kit, options, hint):
    kit.options(OPERATIONS=options)
    (message,) = check_settings()
    assert hint in f"{message.msg} {message.hint}"
