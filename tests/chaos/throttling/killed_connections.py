"""Decisions while the server's connections are killed twenty times a second: no strategy admits too many.

``python -m tests.chaos.throttling.killed_connections 1000000`` starts a server, makes a million decisions with all
strategies, and prints the figures. The exit code is 1 if a strategy admitted too many.
"""

import sys
import time

from tests.chaos.throttling.support.processes import ask_from_processes, throttles
from tests.throttling.support.bounds import excess

LIMIT, PERIOD = 50, 100_000  # microseconds
RATES = [(LIMIT, PERIOD / 1_000_000)]
PROCESSES, EVERY = 3, 0.05


def run(server, settings, decisions, *, tasks=0):
    """Return by strategy how many calls were admitted and how many of them too many; kills; decisions missed."""
    with server.client(retry_on_timeout=True) as client:
        kills = []

        def kill(over):
            kills.append(client.client_kill_filter(_type="normal", skipme=True))
            over.wait(EVERY)

        admitted, missed = ask_from_processes(
            settings,
            throttles(RATES),
            processes=PROCESSES,
            decisions=-(-decisions // PROCESSES),
            tasks=tasks,
            meanwhile=kill,
        )
    found = {
        name.removesuffix("race"): (len(stamps), excess(name.removesuffix("race"), stamps, LIMIT, PERIOD))
        for name, stamps in admitted.items()
    }
    return found, sum(kills), missed


def main(decisions):
    """Run it, and return the exit code."""
    from tests.fixtures.process import Server

    server, began = Server(), time.monotonic()
    try:
        found, kills, missed = run(
            server, {"PREFIX": "kills", "CONNECTIONS": {"default": server.connection}}, decisions
        )
    finally:
        server.stop()
    print(
        f"{decisions:,} decisions, {kills:,} connections killed, {missed:,} answered by the failure policy, "
        f"{time.monotonic() - began:.0f} s"
    )
    for strategy, (admitted, over) in found.items():
        print(f"{strategy:16} {admitted:9,} admitted, {over} too many")
    return int(any(over for _, over in found.values()))


if __name__ == "__main__":
    from django.conf import settings

    settings.configure(SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is")
    sys.exit(main(int(sys.argv[1].replace("_", ""))))
