"""Several processes that ask for decisions at the same time."""

import json
import subprocess
import threading
from contextlib import contextmanager

from tests.fixtures.fork_server import start_python
from tests.throttling.support.models.every import MODELS

SECONDS = 600  # for which a process may run


def throttles(rates, **options):
    """Return the arguments of a throttle of each strategy."""
    return [{"name": "race", "rates": rates, "strategy": strategy, **options} for strategy in MODELS]


def ask_from_processes(settings, asked, *, processes, decisions, tasks=0, together=False, meanwhile=None):
    """Return the moments of what all processes were admitted, by strategy and name, and what no server decided.

    Each process asks for so many ``decisions``. ``meanwhile`` is called again and again until they have ended.
    """
    config = {
        "settings": {**settings, "THROTTLING": {"REMEMBER": 0}},
        "throttles": asked,
        "decisions": decisions,
        "tasks": tasks,
        "together": together,
    }
    command = ["-m", "tests.chaos.throttling.support.process", json.dumps(config)]
    running = [start_python(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(processes)]
    try:
        for one in running:
            assert one.stdout.readline() == "ready\n"
        for one in running:
            one.stdin.write("\n")
            one.stdin.flush()
        with called(meanwhile):
            replies = [json.loads(one.communicate(timeout=SECONDS)[0]) for one in running]
    finally:
        for one in running:
            one.kill()
            one.communicate()
    admitted = {}
    for reply in replies:
        for name, stamps in reply["admitted"].items():
            admitted[name] = sorted(admitted.get(name, []) + stamps)
    return admitted, sum(reply["missed"] for reply in replies)


@contextmanager
def called(function):
    """Call a function again and again, in a thread, for the length of a block."""
    over = threading.Event()

    def calling():
        while function and not over.is_set():
            function(over)

    thread = threading.Thread(target=calling)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
