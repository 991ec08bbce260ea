"""Three hundred requests at once from one address, to a real server with few connections to Redis.

``python -m tests.chaos throttling.bursts 20`` sends 20 bursts to an ASGI server and to a threaded WSGI server, with
50, 5 and 2 connections and the time limits of a real site. A throttle has to admit the right number, no response may be
an error, and the circuit breaker must not count a failure.
"""

import asyncio
import json
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage
from tests.chaos.throttling.support.burst_site import LIMIT
from tests.fixtures.fork_server import start_python
from tests.fixtures.process import free_port, wait_for

BURST = 300
PATHS = {"asgi": ("/async/", "/view/"), "wsgi": ("/view/", "/async/")}


@contextmanager
def site(kind, url, *, connections, timeout=0.25, plant=False):
    """Serve the site in a process of its own; gives its port."""
    port = free_port()
    given = {"BURST_URL": url, "BURST_CONNECTIONS": connections, "BURST_TIMEOUT": timeout, "BURST_PLANT": plant or ""}
    environment = os.environ | {name: str(value) for name, value in given.items()}
    process = start_python(["-m", "tests.chaos.throttling.support.burst_site", kind, port], env=environment)
    try:
        wait_for(lambda: asyncio.run(_is_up(port)), timeout=60)
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def _is_up(port):
    try:
        return (await ask(port, "/state/"))[0] == 200
    except OSError:
        return False


async def ask(port, path, ready=None):
    """Send one request on a connection of its own, and return status and body; with others where there is a barrier."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if ready:
            await ready.wait()
        writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        reply = await reader.read()
    finally:
        writer.close()
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


async def burst(port, path, size=BURST):
    """Send so many requests at once, and return how many got which status."""
    ready = asyncio.Barrier(size)
    async with asyncio.timeout(90):
        replies = await asyncio.gather(*[ask(port, path, ready) for _ in range(size)])
    return Counter(status for status, _ in replies)


def state(port):
    """Return how the circuit breaker of the site stands."""
    return json.loads(asyncio.run(ask(port, "/state/"))[1])


def wrong(statuses, breaker, size=BURST):
    """Return what is wrong with the outcome of a burst."""
    right = {200: LIMIT, 429: size - LIMIT}
    found = [f"{dict(statuses)} in place of {right}"] if statuses != right else []
    return found + ([f"the breaker: {breaker}"] if breaker["open"] or breaker["failures"] else [])


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many bursts each server gets."""

    bursts: int


def run(plan):
    """Send the bursts."""
    found = {}
    with stage() as place:
        for kind, paths in PATHS.items():
            for connections in (50, 5, 2):
                with site(kind, place.server.url, connections=connections) as port:
                    for path in paths:
                        texts = found.setdefault(f"{kind} {path} with {connections}", [])
                        for _ in range(plan.bursts):
                            place.server.flush()
                            statuses = asyncio.run(burst(port, path))
                            texts += wrong(statuses, state(port))
    return Outcome(f"{plan.bursts} bursts each; wrong by server, page and connections:", found)
