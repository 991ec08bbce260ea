"""Run all benchmarks, or the named ones: ``python -m benchmarks locks throttling``.

A benchmark takes the numbers after its name, as in ``python -m benchmarks chaos 5000``, and the words after a colon,
as in ``python -m benchmarks workers:drains,starts``.
"""

import signal
import sys
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> int:
    """Run the named benchmarks one after the other, and return an exit code."""
    available = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    chosen: list[tuple[str, list[int | str]]] = []
    for text in names:
        name, _, words = text.partition(":")
        if name.isdecimal() and chosen:
            chosen[-1][1].append(int(name))
        else:
            chosen.append((name, [words] if words else []))
    unknown = [name for name, _ in chosen if name not in available]
    if unknown:
        print(f"Unknown benchmark: {', '.join(unknown)}. Choose from: {', '.join(available)}.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an orderly exit ends servers and workers too
    for name, arguments in chosen or [(name, []) for name in available]:
        print(f"== {name}")
        import_module(f"benchmarks.bench_{name}").run(*arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
