"""The arithmetic from the cost of one operation to machines."""

from benchmarks.support.scale import Need, UnitCost, need, total

COST = UnitCost(server=30.0, client=60.0, network=250.0, stored=100.0)


def test_load_is_shared_by_nodes_that_are_busy_for_a_part_of_the_time():
    assert need(COST, 100_000, things=2e9) == Need(nodes=5, clients=10, gigabits=0.2, gigabytes=200.0)


def test_small_load_needs_one_node_and_none_needs_no_node():
    assert need(COST, 1).nodes == 1
    assert need(COST, 0) == Need(0, 0, 0.0, 0.0)


def test_costs_of_operations_add_up():
    assert total([COST, UnitCost(1.0, 2.0, 3.0)]) == UnitCost(31.0, 62.0, 253.0, 100.0)
