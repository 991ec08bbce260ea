"""Puts jobs for one peer, in an environment where that is installed, as the benchmark commands on standard input.

Each line of input is a JSON list of a command and its arguments; the answer is one line of JSON. A peer is a module
``with_<name>`` with ``PACKAGES``, ``put(about)`` and ``commands(processes)``; it may have further commands.
"""

import json
import sys
import time
from importlib import import_module, metadata
from typing import Any


def about(number: int) -> dict[str, Any]:
    """Return the argument of a job: a small dict."""
    return {"number": number, "to": "someone@example.org", "kind": "welcome"}


def versions(peer: Any) -> str:
    """Return the versions of the peer's packages."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in peer.PACKAGES)


def commands(peer: Any, processes: int) -> list[list[str]]:
    """Return the commands that start this number of worker processes."""
    command_lines: list[list[str]] = peer.commands(processes)
    return command_lines


def fill(peer: Any, first: int, count: int) -> float:
    """Put jobs one by one, and return the rate per second."""
    began = time.perf_counter()
    for number in range(first, first + count):
        peer.put(about(number))
    return count / (time.perf_counter() - began)


def pace(peer: Any, first: int, count: int, seconds: float) -> list[tuple[int, int]]:
    """Put a job every ``seconds``; return the start and the end of each call, in ns."""
    times = []
    begin = time.monotonic() + 0.05
    for at in range(count):
        time.sleep(max(0.0, begin + at * seconds - time.monotonic()))
        before = time.monotonic_ns()
        peer.put(about(first + at))
        times.append((before, time.monotonic_ns()))
    return times


VERBS = {verb.__name__: verb for verb in (versions, commands, fill, pace)}


def main(name: str) -> None:
    """Run the commands until the end of the input."""
    answers, sys.stdout = sys.stdout, sys.stderr  # output of a peer must not look like an answer
    peer = import_module(f"benchmarks.support.peers.with_{name}")
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        function = VERBS.get(verb)
        answer = function(peer, *arguments) if function else getattr(peer, verb)(*arguments)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
