"""Run all benchmarks, or those named: ``python -m benchmarks locks workers:drains,starts``.

Numbers after a name are given to that one, as in ``python -m benchmarks chaos 5000``.
"""

import sys
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> int:
    """Run them one after the other."""
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    chosen: list[tuple[str, list[int | str]]] = []
    for name in names:
        if name.isdecimal() and chosen:
            chosen[-1][1].append(int(name))
        else:
            benchmark, _, cases = name.partition(":")
            chosen.append((benchmark, [cases] if cases else []))
    unknown = [name for name, _ in chosen if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Those there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name, arguments in chosen or [(name, []) for name in known]:
        print(f"== {name}")
        import_module(f"benchmarks.bench_{name}").run(*arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
