"""Faults of the server and the network while views are recorded: each view counts exactly once.

``python -m tests.chaos pageviews.faults 300`` injects 300 faults. No page may have another number of views than were
recorded.
"""

import random
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from redis_kit.pageviews import PageViews, dropped, flush
from redis_kit.pageviews.batch import Event
from redis_kit.pageviews.buffer import buffer
from redis_kit.pageviews.periods import now
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage

USER, PASSWORD = "counter", "first"
PAGES = [f"p{number}" for number in range(6)]
ON_THE_WAY = ("drop_replies", "cut_reply", "rst", "blackhole", "refuse")
DENIED = ("hincrby", "zincrby", "pexpire", "pfadd", "set", "evalsha")
PATIENCE = 30.0  # seconds until a server without faults must have taken all


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many faults there are."""

    rounds: int


def connection(port):
    return {"URL": f"redis://{USER}:{PASSWORD}@127.0.0.1:{port}/0"}


def prepare(admin):
    """Make the user as which the kit comes."""
    admin.acl_setuser(USER, enabled=True, passwords=[f"+{PASSWORD}"], keys=["*"], categories=["+@all"])


@contextmanager
def other_password(admin):
    admin.execute_command("ACL", "SETUSER", USER, "resetpass", ">second")
    admin.execute_command("CLIENT", "KILL", "USER", USER)
    yield
    admin.execute_command("ACL", "SETUSER", USER, f">{PASSWORD}")


@contextmanager
def denied(admin, command):
    admin.execute_command("ACL", "SETUSER", USER, f"-{command}")
    yield
    admin.execute_command("ACL", "SETUSER", USER, f"+{command}")


@contextmanager
def full(admin):
    admin.config_set("maxmemory", 1)
    yield
    admin.config_set("maxmemory", 0)


@contextmanager
def read_only(admin):
    admin.replicaof("127.0.0.1", 1)
    yield
    admin.replicaof("NO", "ONE")


@contextmanager
def killed(admin):
    admin.execute_command("CLIENT", "KILL", "USER", USER)
    yield


def faults(proxy, admin):
    """Return the faults by name."""
    found = {mode: lambda mode=mode: proxy.fault(mode) for mode in ON_THE_WAY}
    found |= {f"without {command}": lambda command=command: denied(admin, command) for command in DENIED}
    by_name = {one.__name__: lambda one=one: one(admin) for one in (other_password, full, read_only, killed)}
    return found | by_name | {"none": nullcontext}


def record(chance, recorded):
    """Record some views of some pages."""
    moment = now()
    for _ in range(chance.choice((1, 5, 40, 600))):
        page, key = chance.choice(PAGES), chance.choice(("", "1", "2"))
        if buffer.record(Event(moment, page, key, f"visitor {chance.randrange(50)}")):
            recorded[page] += 1
            recorded["all"] += 1
            if key:
                recorded[page, key] += 1


def run(plan):
    """Record views while faults are injected on a server of its own; then compare."""
    from redis_kit.core import connections

    connections.WORKER = 0.3
    buffer._start = lambda: None
    with stage() as place, place.server.client() as admin:
        proxy = place.proxy()
        prepare(admin)
        place.connect(connection(proxy.port))
        recorded, met, wrong = inject(proxy, admin, plan.rounds, plan.seed)
    kinds = ", ".join(f"{count} × {name}" for name, count in sorted(met.items()))
    texts = [f"{name}: {counted} counted, {expected} recorded" for name, (counted, expected) in wrong.items()]
    return Outcome(f"{recorded:,} views; {kinds}", {"lost or doubled": texts})


def inject(proxy, admin, rounds, seed):
    """Return what was recorded, the faults, and where views were counted that differ: (counted, recorded)."""
    chance, recorded, met = random.Random(seed), Counter(), Counter()
    known = faults(proxy, admin)
    for _ in range(rounds):
        name = chance.choice(sorted(known))
        met[name] += 1
        with known[name]():
            record(chance, recorded)
            flush()
            if chance.random() < 0.3:
                flush()
        if chance.random() < 0.5:
            flush()
    deadline = time.monotonic() + PATIENCE
    while not flush() and time.monotonic() < deadline:
        time.sleep(0.05)
    counted = {name: views(name) for name in recorded}
    wrong = {name: (counted[name], recorded[name]) for name in recorded if counted[name] != recorded[name]}
    if any(dropped()) or buffer.waiting:
        wrong["dropped, waiting"] = (dropped(), buffer.waiting)
    return recorded["all"], met, wrong


def views(name):
    """Return the views of a page, of an object, or of all."""
    if name == "all":
        return PageViews.site(on_failure="raise").views()
    return (PageViews(*name) if isinstance(name, tuple) else PageViews(name)).views()
