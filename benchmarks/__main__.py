"""Run all benchmarks, or the named ones: ``python -m benchmarks locks throttling``.

A benchmark takes the numbers after its name, as in ``python -m benchmarks chaos 5000``, and the words after a colon,
as in ``python -m benchmarks workers:drains,starts``.
"""

import signal
import sys
from importlib import import_module
from inspect import signature
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
    for name, arguments in chosen:
        if wrong := _wrong(name, arguments):
            print(wrong, file=sys.stderr)
            return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an orderly exit ends servers and workers too
    for name, arguments in chosen or [(name, []) for name in available]:
        print(f"== {name}")
        import_module(f"benchmarks.bench_{name}").run(*arguments)
    return 0


def _wrong(name: str, arguments: list[int | str]) -> str:
    """Return what is wrong with the arguments of a benchmark, or "". Its ``PARTS`` are the words that it takes."""
    module = import_module(f"benchmarks.bench_{name}")
    takes = [parameter.annotation is str for parameter in signature(module.run).parameters.values()]
    if len(arguments) > len(takes) or [isinstance(each, str) for each in arguments] != takes[: len(arguments)]:
        return f"{name} takes {'words after a colon' if True in takes else 'numbers' if takes else 'no arguments'}."
    words = [word for text in arguments if isinstance(text, str) for word in text.split(",")]
    parts = getattr(module, "PARTS", words)
    unknown = [word for word in words if word not in parts]
    return f"Unknown part of {name}: {', '.join(unknown)}. Choose from: {', '.join(parts)}." if unknown else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
