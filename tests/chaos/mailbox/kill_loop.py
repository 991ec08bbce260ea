"""Each member of a chat reads each message once and in order, while processes and the server are killed.

``python -m tests.chaos mailbox.kill_loop 10000 200 100000`` lets 10,000 members of 200 chats read 100,000 messages, in
several processes. Processes are killed, replies are cut by a proxy, and the server, which writes each change to its
disk before it answers, is killed. Guests join and leave meanwhile. No number may be missing, be read twice or out of
order, no message may be sent twice, and memory has to fall back.
"""

import contextlib
import json
import os
import random
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from redis_kit.core.errors import RedisKitError
from redis_kit.mailbox import Chat
from tests.chaos.engine import program
from tests.chaos.engine.crew import Crew
from tests.chaos.engine.faults import Faults, restart, weighted
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage

READERS, SENDERS, GUESTS = 3, 2, 1
MODES = ("reset_replies", "reset_commands", "rst", "drop_replies")
FAULTS = {"proxy": 50, "restart": 15, "kill": 35}
MOST = 1.05  # of the memory before the messages


@dataclass(frozen=True)
class Plan(program.Plan):
    """How much is sent and read, and how many faults there are at most."""

    members: int
    chats: int
    messages: int
    pause: float = 3.0  # seconds between two faults, at most
    faults: int = 60


class History:
    """Lines of a process. A killed process loses none that it wrote."""

    def __init__(self, path):
        self.path = path
        self.file = path.open("a")

    def write(self, *entry):
        """Write a line."""
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()

    @staticmethod
    def read(path):
        """Return the lines of a file, without one that was cut."""
        lines = path.read_text().splitlines() if path.exists() else []
        with contextlib.suppress(ValueError, IndexError):
            json.loads(lines[-1])
            return [json.loads(line) for line in lines]
        return [json.loads(line) for line in lines[:-1]]


def again(call):
    """Return what a call returns, repeating it while Redis fails, for two minutes at most."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return call()
        except RedisKitError as error:
            if type(error).__module__.endswith("mailbox.errors") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def chats_of(members, chats, number, count):
    """Return the chats and members that are the share of a process: every member of a few chats."""
    return {f"c{chat}": range(chat, members, chats) for chat in range(chats) if chat % count == number}


def send(folder, number, members, chats, messages):
    """Send messages with ids of calls; after a kill, go on with the first that is not in the history."""
    history = History(Path(folder, f"send {number}.history"))
    done = {entry[1] for entry in History.read(history.path) if entry[0] == "sent"}
    for place in range(number, messages, SENDERS):
        if place in done:
            continue
        name, began = f"c{place % chats}", time.monotonic()
        sent = again(lambda name=name, place=place: Chat(name).send(None, f"body {place}", client_id=f"id {place}"))
        history.write("sent", place, name, sent, began, time.monotonic())


def read(folder, number, members, chats, messages):
    """Fetch and acknowledge for each member, until all have read all. A range is noted before it is acknowledged."""
    history, plan = History(Path(folder, f"read {number}.history")), chats_of(members, chats, number, READERS)
    left = {(name, f"m{member}") for name, members in plan.items() for member in members}
    wanted = {name: len(range(int(name[1:]), messages, chats)) for name in plan}
    while left:
        for name, member in sorted(left):
            fetched = again(lambda name=name, member=member: Chat(name).fetch(member, 1000))
            if fetched.messages:
                numbers = [message.number for message in fetched.messages]
                bodies = [message.body for message in fetched.messages]
                history.write("read", name, member, fetched.read, numbers[0], numbers[-1], fetched.missed)
                if numbers != list(range(numbers[0], numbers[-1] + 1)) or member.endswith("0"):
                    history.write("bodies", name, member, dict(zip(numbers, bodies, strict=True)))
                again(lambda name=name, member=member, last=fetched.messages[-1]: Chat(name).ack(member, last))
            elif fetched.last >= wanted[name]:
                left.discard((name, member))
        time.sleep(0.2)


def visit(folder, number, members, chats, messages):
    """Join a chat, read some messages, leave it, and so on, until killed."""
    history, chance = History(Path(folder, f"visit {number}.history")), random.Random()
    for turn in range(10**9):
        name, guest = f"c{chance.randrange(chats)}", f"guest {os.getpid()} {turn}"
        began = time.monotonic()
        again(lambda name=name, guest=guest: Chat(name).join(guest))
        history.write("joined", name, guest, began, time.monotonic())
        for _ in range(3):
            fetched = again(lambda name=name, guest=guest: Chat(name).fetch(guest, 1000))
            if fetched.messages:
                numbers = [message.number for message in fetched.messages]
                history.write("read", name, guest, fetched.read, numbers[0], numbers[-1], fetched.missed)
                again(lambda name=name, guest=guest, last=numbers[-1]: Chat(name).ack(guest, last))
            time.sleep(0.01)
        again(lambda name=name, guest=guest: Chat(name).leave(guest))
        history.write("left", name, guest)


def check(folder, members, chats, messages):
    """Return what went wrong by its kind, and the number of guests."""
    wrong, sent, spans, guests = {"sent": [], "lost or doubled": [], "guests": []}, defaultdict(dict), {}, {}
    ranges, bodies = defaultdict(list), defaultdict(dict)
    for path in sorted(folder.glob("*.history")):
        for kind, *entry in History.read(path):
            if kind == "sent":
                place, name, number, *span = entry
                sent[name].setdefault(number, set()).add(place)
                spans[name, number] = span
            elif kind == "joined":
                guests[entry[0], entry[1]] = entry[2:]
            elif kind == "read":
                ranges[entry[0], entry[1]].append(entry[2:])
            elif kind == "bodies":
                bodies[entry[0]].update(entry[2])
    for chat in range(chats):
        name, count = f"c{chat}", len(range(chat, messages, chats))
        if set(sent[name]) != set(range(1, count + 1)) or any(len(places) > 1 for places in sent[name].values()):
            wrong["sent"].append(f"{name}: {count} messages have the numbers {sorted(sent[name])[:20]} ...")
        for number, body in bodies[name].items():
            if body != f"body {next(iter(sent[name].get(int(number), {'?'})))}":
                wrong["sent"].append(f"{name}: message {number} is {body}")
        for member in range(chat, members, chats):
            wrong["lost or doubled"] += _gaps(f"{name} m{member}", ranges[name, f"m{member}"], 0, count)
    for (name, guest), (began, ended) in guests.items():
        found = ranges[name, guest]
        if found:
            wrong["guests"] += _gaps(f"{name} {guest}", found, found[0][0], None)
            if any(span[1] < began for number, span in _of(spans, name) if number >= found[0][1]):
                wrong["guests"].append(f"{name}: {guest} saw a message from before they joined")
            if any(span[0] > ended for number, span in _of(spans, name) if number < found[0][1]):
                wrong["guests"].append(f"{name}: {guest} did not see a message from after they joined")
    return wrong, len(guests)


def _of(spans, name):
    return ((number, span) for (chat, number), span in spans.items() if chat == name)


def _gaps(who, ranges, start, count):
    """Yield what is wrong with ranges, each noted before it was acknowledged: the last one of a place counts."""
    at = start
    for place, (read, first, last, missed) in enumerate(ranges):
        if first != read + 1 or missed:
            yield f"{who}: read up to {read}, and then got {first} ({missed} missed)"
        if read not in (at, start) and read != (ranges[place - 1][0] if place else start):
            yield f"{who}: place {read} after {at}"
        at = last
    if count is not None and at != count:
        yield f"{who}: the last one is {at}, not {count}"


def run(plan):
    """Send and read while processes, connections and the server are killed; then check."""
    counts = plan.members, plan.chats, plan.messages
    with stage("always") as place:
        chance, proxy = random.Random(plan.seed), place.proxy()
        for chat in range(plan.chats):
            Chat(f"c{chat}").create([f"m{member}" for member in range(chat, plan.members, plan.chats)])
        before = _memory(place.server)
        kit = json.dumps(place.kit | {"CONNECTIONS": {"default": proxy.connection}})

        def starts(role, count):
            return {
                f"{role.__name__} {n}": lambda n=n: place.start(role, str(place.folder), n, *counts, REDIS_KIT=kit)
                for n in range(count)
            }

        working = starts(send, SENDERS) | starts(read, READERS)
        crew = Crew(working | starts(visit, GUESTS))
        place.at_the_end(crew.end)

        def cut():
            with proxy.fault(chance.choice(MODES)):
                time.sleep(0.05)

        kinds = {
            "proxy": cut,
            "restart": lambda: restart(place.server),
            "kill": lambda: crew.replace(chance.choice([*crew.processes])),
        }
        faults = Faults(kinds, weighted(chance, FAULTS), chance=chance, calm=(0, plan.pause))
        while crew.are_at_work(working):
            if faults.count.total() < plan.faults:
                faults.next()
            else:
                time.sleep(0.1)
        crew.end()
        for chat in range(plan.chats):  # guests that were killed are still members
            for member in again(lambda chat=chat: Chat(f"c{chat}").members()):
                if member.name.startswith("guest"):
                    Chat(f"c{chat}").leave(member.name)
        memory = _memory(place.server) / before
        found, guests = check(place.folder, *counts)
    found["memory"] = [f"memory is {memory:.2f} of that before"] if memory > MOST else []
    figures = "{:,} members, {:,} chats, {:,} messages".format(*counts)
    return Outcome(f"{figures}; {faults}; {guests} guests; memory {memory:.3f} of that before", found, guests=guests)


def _memory(server):
    """Return the bytes of all keys. The ids of calls are removed, as if their hour were over."""
    with server.client() as client:
        keys = [key for key in client.scan_iter("*", count=1000) if not key.endswith(":ids") or not client.delete(key)]
        sizes = client.pipeline(transaction=False)
        for key in keys:
            sizes.memory_usage(key, samples=0)
        return sum(sizes.execute())
