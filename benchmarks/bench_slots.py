"""Names over the slots and nodes of a Cluster, by the keys of the kit, beside what chance predicts. Needs no server."""

from benchmarks.support.measurement import configure
from benchmarks.support.slots import chance
from benchmarks.support.slots.spread import SLOTS, balance, on_nodes, parts, slots_of

NODES = (3, 10, 100, 1000)


def run(names: int = 1_000_000) -> None:
    """Print the balance of each family for this many names, then the keys that do not spread."""
    configure()
    from benchmarks.support.slots.families import families, fixed  # needs Django's settings

    counts = {title: slots_of(map(key, range(names))) for title, key in families().items()}
    deviation, fullest = chance.deviation(names, 1 / SLOTS), chance.largest(names, [1 / SLOTS] * SLOTS)
    print(f"{names:,} names of each kind over {SLOTS:,} slots. Chance predicts a mean of {names / SLOTS:.1f},")
    print(f"a standard deviation of {deviation:.1f}, and {fullest:,} in the fullest slot.\n")
    print(f"{'':36}{'slots used':>11}{'deviation':>11}{'fullest':>11}")
    for title, slots in counts.items():
        used, largest, deviation = balance(slots)
        print(f"{title:36}{used:11,}{deviation:11,.1f}{largest:11,}")
    print(f"\nThe fullest node, as a multiple of the mean, and the nodes used\n{'':36}", end="")
    print("".join(f"{f'{nodes} nodes':>15}" for nodes in NODES))
    predicted = [chance.largest(names, _shares(nodes)) * nodes / names for nodes in NODES]
    print(f"{'chance':36}" + "".join(f"{most:9.2f}{nodes:6}" for most, nodes in zip(predicted, NODES, strict=True)))
    for title, slots in counts.items():
        each = [balance(on_nodes(slots, nodes)) for nodes in NODES]
        ratios = zip(each, NODES, strict=True)
        print(f"{title:36}" + "".join(f"{one.largest * nodes / names:9.2f}{one.used:6}" for one, nodes in ratios))
    print("\nWhat stays in one slot, when it is written, and what bounds its load")
    for row in fixed():
        print(f"  {row.key}\n      {row.written}: {row.bound}")
    print()


def _shares(nodes: int) -> list[float]:
    return [len(part) / SLOTS for part in parts(nodes)]
