"""Strategies chosen by name or path."""

import pytest

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling import Strategy, Throttle, strategies


class Half(strategies.GCRA):
    """Admits as GCRA does, and says that half of it is left."""

    def decision(self, reply, cost):
        found = super().decision(reply, cost)
        return found._replace(remaining=found.remaining // 2)


class NoStrategy:
    """Not a strategy."""


def test_strategy_is_found_by_name():
    assert strategies.load("gcra") is strategies.GCRA
    assert issubclass(strategies.GCRA, Strategy)


def test_strategy_is_found_by_its_path(kit):
    limit = Throttle("login", "9/h", strategy="tests.throttling.test_strategies.Half")
    assert limit.hit("joe").remaining == 4


def test_two_strategies_do_not_read_each_others_numbers(kit):
    assert Throttle("login", "9/h").hit("joe").remaining == 8
    assert Throttle("login", "9/h", strategy="tests.throttling.test_strategies.Half").hit("joe").remaining == 4


@pytest.mark.parametrize("name", ["gcrA", "grca", "", "leaky", None, 5])
def test_unknown_name_is_refused_with_those_that_there_are(name):
    with pytest.raises(InvalidValue, match="gcra"):
        Throttle("login", "5/m", strategy=name)


@pytest.mark.parametrize(
    "path", ["no.such.module", "tests.throttling.nothing", "tests.throttling.test_strategies.NoStrategy"]
)
def test_path_to_anything_else_is_refused(path):
    with pytest.raises(ConfigurationError, match="strategy"):
        Throttle("login", "5/m", strategy=path)


def test_base_class_decides_nothing():
    with pytest.raises(NotImplementedError):
        Strategy([]).decision([1], 1)
