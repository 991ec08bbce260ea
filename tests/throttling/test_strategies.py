"""Strategies chosen by name or path."""

import pytest

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling import Strategy, Throttle, hit_all, strategies
from redis_kit.throttling.strategies import GCRA


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


class Misspelt(Wide):
    """Calls a function that there is not."""

    kind = "misspelt"
    lua = Wide.lua.replace("function take(", "function tkae(")


class Broken(Wide):
    """Can't be compiled."""

    kind = "broken"
    lua = Wide.lua.replace("return true, figures", "return true figures")


class NoGive(Wide):
    """Counts, and can't refund."""

    kind = "no_give"
    lua = Wide.lua.replace("#figures", "figures.nosuch()")


class Remark(Wide):
    """Ends in a comment without the end of its line."""

    kind = "remark"
    lua = f"{Wide.lua.rstrip()} -- the end"


class TwoWords(Wide):
    """Its kind would be two."""

    kind = "two words"


class NoKind(Wide):
    """Has none."""

    kind = None


class Fractions(Wide):
    """Has numbers that are not whole."""

    kind = "fractions"

    def __init__(self, rates):
        super().__init__(rates)
        self.numbers = (1.5, 2)


class ShortState(Wide):
    """Leaves out figures."""

    kind = "short_state"

    def state(self, place, now, figures, cost):
        return self.rates[place], 1


class NoStrategy:
    """Not a strategy."""


@pytest.mark.parametrize("name", strategies.STRATEGIES)
def test_strategy_is_found_by_name(name):
    found = strategies.load(name)
    assert issubclass(found, Strategy)
    assert f"{found.__module__}.{found.__qualname__}" == strategies.STRATEGIES[name]
    assert Throttle("login", "9/h", strategy=name).strategy == name


@pytest.mark.parametrize("name", ["fixed_window", "sliding_counter", "sliding_log"])
def test_strategy_without_bursts_refuses_one_where_it_is_built(name):
    with pytest.raises(InvalidValue, match="token_bucket"):
        Throttle("login", "9/h burst 3", strategy=name)


def test_log_is_kept_within_bounds():
    with pytest.raises(InvalidValue, match="10000"):
        Throttle("login", "10001/h", strategy="sliding_log")


def test_strategy_of_a_project_may_have_any_number_of_figures(kit):
    limit = Throttle("wide", "9/h", strategy="tests.throttling.test_strategies.Wide")
    assert limit.hit("joe").limit == 40
    assert [one.limit for one in hit_all([(limit, "joe"), (Throttle("other", "3/h"), "joe")])] == [40, 3]
    limit.reserve("joe", cost=2).settle(1)
    assert kit.client.get(limit.keys("joe").state) == "40"


@pytest.mark.parametrize("policy", ["open", "closed", "local"])
@pytest.mark.parametrize(("name", "part"), [("Misspelt", "variable 'take'"), ("Broken", "near 'figures'")])
def test_mistake_in_lua_is_no_outage(kit, name, part, policy, twin):
    limit = Throttle("own", "3/h", strategy=f"{__name__}.{name}", on_failure=policy)
    with pytest.raises(ConfigurationError, match=f"The Lua code of a script is wrong.*{part}"):
        twin(limit.hit, "joe")
    with pytest.raises(ConfigurationError, match=part):
        hit_all([(limit, "joe"), (Throttle("other", "3/h"), "joe")])


def test_mistake_in_a_refund_is_no_outage(kit, twin):
    reservation = Throttle("own", "3/h", strategy=f"{__name__}.NoGive").reserve("joe", cost=2)
    with pytest.raises(ConfigurationError, match="attempt to call field 'nosuch'"):
        twin(reservation.settle, 1)


def test_lua_may_end_in_a_comment(kit):
    limit = Throttle("own", "3/h", strategy=f"{__name__}.Remark")
    assert limit.hit("joe").limit == 40
    limit.reserve("joe", cost=2).settle(1)
    assert [each.limit for each in hit_all([(limit, "joe"), (Throttle("other", "3/h"), "joe")])] == [40, 3]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TwoWords", "kind of the strategy '.*TwoWords' must be letters, digits and '_', not 'two words'"),
        ("NoKind", "kind .* must be letters, digits and '_', not None"),
        ("Fractions", r"Fractions.numbers must be whole numbers, not \(1.5, 2\)"),
    ],
)
def test_members_are_checked_where_a_throttle_is_built(name, message):
    with pytest.raises(ConfigurationError, match=message):
        Throttle("own", "3/h", strategy=f"{__name__}.{name}")


def test_state_of_a_wrong_shape_is_named(kit):
    with pytest.raises(ConfigurationError, match=r"ShortState.state\(\) must return \(rate, .*, reset\), not "):
        Throttle("own", "3/h", strategy=f"{__name__}.ShortState").hit("joe")


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
        Strategy([]).decision(True, 1, [1], 1)


def test_unknown_strategy_names_the_nearest_and_all():
    names = "'gcra', 'token_bucket', 'fixed_window', 'sliding_counter', 'sliding_log'"
    with pytest.raises(InvalidValue, match=f"Did you mean 'sliding_log'.*Use {names} or a dotted path"):
        Throttle("a", "5/m", strategy="sliding_window")
