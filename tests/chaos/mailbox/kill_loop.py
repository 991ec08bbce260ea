"""Each member of a chat reads each message once and in order, while processes and the server are killed.

``python -m tests.chaos.mailbox.kill_loop 10000 200 100000 7`` lets 10,000 members of 200 chats read 100,000 messages,
in several processes, with seed 7. Processes are killed, replies are cut by a proxy, and the server, which writes each
change to its disk before it answers, is killed. Guests join and leave meanwhile. The exit code is 1 if a number is
missing, was read twice or out of order, if a message was sent twice, or if memory did not fall back.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from redis_kit.core.errors import RedisKitError
from redis_kit.mailbox import Chat
from tests.fixtures.fork_server import ROOT, start_python
from tests.fixtures.proxy import Proxy

READERS, SENDERS, GUESTS = 3, 2, 1
FAULTS = ("reset_replies", "reset_commands", "rst", "drop_replies")
MOST = 1.05  # of the memory before the messages


class Outcome(NamedTuple):
    """What went wrong; the kills and restarts; and the memory after all have read, as a share of that before."""

    wrong: list[str]
    kills: int
    restarts: int
    memory: float
    guests: int


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


def send(history, plan, number, messages, chats):
    """Send messages with ids of calls; after a kill, go on with the first that is not in the history."""
    done = {entry[1] for entry in History.read(history.path) if entry[0] == "sent"}
    for place in range(number, messages, SENDERS):
        if place in done:
            continue
        name, began = f"c{place % chats}", time.monotonic()
        sent = again(lambda name=name, place=place: Chat(name).send(None, f"body {place}", client_id=f"id {place}"))
        history.write("sent", place, name, sent, began, time.monotonic())


def read(history, plan, number, messages, chats):
    """Fetch and acknowledge for each member, until all have read all. A range is noted before it is acknowledged."""
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


def visit(history, plan, number, messages, chats):
    """Join a chat, read some messages, leave it, and so on, until killed."""
    chance = random.Random()
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


ROLES = {"send": send, "read": read, "visit": visit}


def check(folder, members, chats, messages):
    """Return what went wrong, and the number of guests."""
    wrong, sent, spans, guests = [], defaultdict(dict), {}, {}
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
            wrong.append(f"{name}: {count} messages have the numbers {sorted(sent[name])[:20]} ...")
        for number, body in bodies[name].items():
            if body != f"body {next(iter(sent[name].get(int(number), {'?'})))}":
                wrong.append(f"{name}: message {number} is {body}")
        for member in range(chat, members, chats):
            wrong += _gaps(f"{name} m{member}", ranges[name, f"m{member}"], 0, count)
    for (name, guest), (began, ended) in guests.items():
        found = ranges[name, guest]
        if found:
            wrong += _gaps(f"{name} {guest}", found, found[0][0], None)
            if any(span[1] < began for number, span in _of(spans, name) if number >= found[0][1]):
                wrong.append(f"{name}: {guest} saw a message from before they joined")
            if any(span[0] > ended for number, span in _of(spans, name) if number < found[0][1]):
                wrong.append(f"{name}: {guest} did not see a message from after they joined")
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


def run(server, folder, members, chats, messages, seed, *, pause=3.0, faults=60):
    """Return the outcome of a run with so many faults. The connection of this process must lead to the server."""
    from django.conf import settings

    chance, proxy = random.Random(seed), Proxy(server.port)
    kit = {**settings.REDIS_KIT, "CONNECTIONS": {"default": proxy.connection}}
    for chat in range(chats):
        Chat(f"c{chat}").create([f"m{member}" for member in range(chat, members, chats)])
    before = _memory(server)
    processes, kills, restarts = {}, 0, 0

    def start(role, number):
        options = [role, str(number), str(folder), str(members), str(chats), str(messages)]
        environment = {**os.environ, "KILL_LOOP_REDIS_KIT": json.dumps(kit)}
        command = ["-m", "tests.chaos.mailbox.kill_loop", "--as", *options]
        processes[role, number] = start_python(command, cwd=ROOT, env=environment)

    roles = [("send", n) for n in range(SENDERS)] + [("read", n) for n in range(READERS)]
    for role in roles + [("visit", n) for n in range(GUESTS)]:
        start(*role)
    try:
        while any(processes[role].poll() is None for role in roles):
            time.sleep(chance.uniform(0, pause))
            if not faults:
                continue
            faults -= 1
            if chance.random() < 0.5:
                with proxy.fault(chance.choice(FAULTS)):
                    time.sleep(0.05)
            elif chance.random() < 0.3:
                server.stop()
                while not server.pids:  # a busy machine reads the file for long
                    with contextlib.suppress(AssertionError):
                        server.start()
                restarts += 1
            else:
                role = chance.choice(list(processes))
                if processes[role].poll() is None:
                    processes[role].kill()
                    processes[role].wait()
                    start(*role)
                    kills += 1
            codes = {processes[role].poll() for role in roles}
            assert codes <= {None, 0, -signal.SIGKILL}, codes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
        proxy.stop()
    for chat in range(chats):  # guests that were killed are still members
        for member in again(lambda chat=chat: Chat(f"c{chat}").members()):
            if member.name.startswith("guest"):
                Chat(f"c{chat}").leave(member.name)
    memory = _memory(server) / before
    wrong, guests = check(folder, members, chats, messages)
    if memory > MOST:
        wrong.append(f"memory is {memory:.2f} of that before")
    return Outcome(wrong, kills, restarts, memory, guests)


def _memory(server):
    """Return the bytes of all keys. The ids of calls are removed, as if their hour were over."""
    with server.client() as client:
        keys = [key for key in client.scan_iter("*", count=1000) if not key.endswith(":ids") or not client.delete(key)]
        sizes = client.pipeline(transaction=False)
        for key in keys:
            sizes.memory_usage(key, samples=0)
        return sum(sizes.execute())


def act(arguments):
    """Be one of the processes."""
    role, number, folder, *counts = arguments
    members, chats, messages = map(int, counts)
    history = History(Path(folder) / f"{role} {number}.history")
    ROLES[role](history, chats_of(members, chats, int(number), READERS), int(number), messages, chats)


def main(arguments):
    """Run it, and return the exit code."""
    from django.test import override_settings

    from tests.chaos.bloom.kill_loop import durable

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an orderly exit ends the processes too
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("members", "chats", "messages", "seed"):
        parser.add_argument(name, type=int)
    options, folder, began = parser.parse_args(arguments), Path(tempfile.mkdtemp()), time.monotonic()
    server = durable(folder / "data")
    try:
        with override_settings(REDIS_KIT={"CONNECTIONS": {"default": server.connection}}):
            outcome = run(server, folder, *vars(options).values())
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - began
    print(f"{options.members:,} members, {options.chats} chats, {options.messages:,} messages in {seconds:.0f} s")
    print(f"{outcome.kills} processes killed, {outcome.restarts} restarts of the server, {outcome.guests} guests")
    print(f"memory of the data after all have read: {outcome.memory:.3f} of that before")
    kinds = Counter(text.partition(":")[0].partition(" ")[0] for text in outcome.wrong)
    print(f"wrong: {len(outcome.wrong)} {dict(kinds) if outcome.wrong else ''} {outcome.wrong[:5]}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    import django
    from django.conf import settings

    kit = json.loads(os.environ.get("KILL_LOOP_REDIS_KIT", "{}"))
    settings.configure(
        INSTALLED_APPS=["redis_kit"], USE_TZ=True, SECRET_KEY="only-for-tests-and-as-long-as-a-real-one", REDIS_KIT=kit
    )
    django.setup()
    if sys.argv[1:2] == ["--as"]:
        sys.exit(act(sys.argv[2:]))
    sys.exit(main(sys.argv[1:]))
