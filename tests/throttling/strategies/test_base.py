"""Strategies chosen by name or path."""

import pytest

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling import Strategy, Throttle, hit_all
from redis_kit.throttling.strategies import base
from redis_kit.throttling.strategies.gcra import GCRA


class Half(GCRA):
    """Admits as GCRA does, and says that half of it is left."""

    def decision(self, allowed, now, figures, cost):
        found = super().decision(allowed, now, figures, cost)
        return found._replace(remaining=found.remaining // 2)


class Wide(Strategy):
    """Admits each call, and has more figures than any strategy of the kit."""

    kind = "wide"
    lua = """
        local function look(key, now, cost, rates)
            local figures = {}
            for place = 1, 40 do
                figures[place] = place * rates[1]
            end
            return true, figures
        end
        local function take(key)
            redis.call("SET", key, 1, "PX", 1000)
        end
        local function give(key, now, stamp, amount, rates, figures)
            redis.call("SET", key, #figures, "PX", 1000)
        end
    """

    def __init__(self, rates):
        super().__init__(rates)
        self.numbers = (7,)

    def state(self, place, now, figures, cost):
        assert list(figures) == [7 * number for number in range(1, 41)]
        return self.rates[place], len(figures), len(figures) - 1, 0, 0


class NoStrategy:
    """Not a strategy."""


@pytest.mark.parametrize("name", base.STRATEGIES)
def test_strategy_is_found_by_name(name):
    found = base.load(name)
    assert issubclass(found, Strategy)
    assert f"{found.__module__}.{found.__qualname__}" == base.STRATEGIES[name]
    assert Throttle("login", "9/h", strategy=name).strategy == name


@pytest.mark.parametrize("name", ["fixed_window", "sliding_counter", "sliding_log"])
def test_strategy_without_bursts_refuses_one_where_it_is_built(name):
    with pytest.raises(InvalidValue, match="token_bucket"):
        Throttle("login", "9/h burst 3", strategy=name)


def test_log_is_kept_within_bounds():
    with pytest.raises(InvalidValue, match="10000"):
        Throttle("login", "10001/h", strategy="sliding_log")


def test_strategy_of_a_project_may_have_any_number_of_figures(kit):
    limit = Throttle("wide", "9/h", strategy="tests.throttling.strategies.test_base.Wide")
    assert limit.hit("joe").limit == 40
    assert [one.limit for one in hit_all([(limit, "joe"), (Throttle("other", "3/h"), "joe")])] == [40, 3]
    limit.reserve("joe", cost=2).settle(1)
    assert kit.client.get(limit.keys("joe").state) == "40"


def test_strategy_is_found_by_its_path(kit):
    limit = Throttle("login", "9/h", strategy="tests.throttling.strategies.test_base.Half")
    assert limit.hit("joe").remaining == 4


def test_two_strategies_do_not_read_each_others_numbers(kit):
    assert Throttle("login", "9/h").hit("joe").remaining == 8
    assert Throttle("login", "9/h", strategy="tests.throttling.strategies.test_base.Half").hit("joe").remaining == 4


@pytest.mark.parametrize("name", ["gcrA", "grca", "", "leaky", None, 5])
def test_unknown_name_is_refused_with_those_that_there_are(name):
    with pytest.raises(InvalidValue, match="gcra"):
        Throttle("login", "5/m", strategy=name)


@pytest.mark.parametrize(
    "path", ["no.such.module", "tests.throttling.nothing", "tests.throttling.strategies.test_base.NoStrategy"]
)
def test_path_to_anything_else_is_refused(path):
    with pytest.raises(ConfigurationError, match="strategy"):
        Throttle("login", "5/m", strategy=path)


def test_base_class_decides_nothing():
    with pytest.raises(NotImplementedError):
        Strategy([]).decision(True, 1, [1], 1)


def test_unknown_strategy_names_the_nearest_and_all():
    names = "'gcra', 'token_bucket', 'fixed_window', 'sliding_counter', 'sliding_log'"
    with pytest.raises(InvalidValue, match=f"Did you mean 'sliding_log'.*Use {names} or a dotted path"):
        Throttle("a", "5/m", strategy="sliding_window")
