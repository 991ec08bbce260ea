"""Run all benchmarks, or those named: ``python -m benchmarks locks workers:drains,starts``."""

import sys
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> int:
    """Run them one after the other."""
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    wanted = [name.partition(":") for name in names or known]
    unknown = [name for name, _, _ in wanted if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Those there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name, _, cases in wanted:
        print(f"== {name}")
        import_module(f"benchmarks.bench_{name}").run(*[cases] * bool(cases))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
