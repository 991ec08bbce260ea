"""Run all benchmarks, or those named: ``python -m benchmarks locks throttling``."""

import sys
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> int:
    """Run them one after the other."""
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Those there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in names or known:
        print(f"== {name}")
        import_module(f"benchmarks.bench_{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
