"""No document of an index is lost, doubled or stale while processes and the server are killed.

``python -m tests.chaos.search.kill_loop 2000 7 --seconds 60`` has three processes that save, change and delete 2,000
rows, with seed 7, and one that rebuilds the index. All are killed at random moments. The server writes each change to
its disk before it answers, and is killed too. Then the index is compared with the table: each record, each word, each
value. The exit code is 1 if anything differs. ``--broken`` leaves rebuilds without the changes of others: the loop must
find that.
"""

import argparse
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

SAVERS = 3
LEASE_MS = 1500  # so that a kill need not be waited out for a minute
GRACE = 0.5  # seconds until a change counts as committed whose process died
WORDS = [f"word{number}" for number in range(60)]


class Board:
    """What the savers say of themselves: how many rounds they did, and whether they have failed to mark a change."""

    def __init__(self):
        self._cells = memoryview(mmap.mmap(-1, 16 * SAVERS)).cast("Q")

    def say(self, saver, *, misses):
        self._cells[saver] += 1
        self._cells[SAVERS + saver] = misses

    def rounds(self):
        return list(self._cells[:SAVERS])

    def settle(self):
        """Wait until each saver has gone on, and none has a change to report: a kill would hide that."""
        before, deadline = self.rounds(), time.monotonic() + 60
        while time.monotonic() < deadline:
            gone_on = all(now > then + 1 for now, then in zip(self.rounds(), before, strict=True))
            if gone_on and not any(self._cells[SAVERS:]):
                return
            time.sleep(0.02)
        raise SystemExit("A saver did not go on.")


def fork(work):
    """Run a function in a child process, and return its id."""
    if pid := os.fork():
        return pid
    try:
        work()
    finally:
        os._exit(0)


def save_rows(board, saver, rows, chance):
    """Save, change and delete rows, some in transactions, until killed."""
    from django.db import connection, transaction

    from tests.chaos.search.models import Note, NoteIndex

    connection.close()
    while True:
        version = chance.randrange(10**6)
        with suppress(Exception), transaction.atomic() if chance.random() < 0.5 else suppress(()):
            for _ in range(chance.choice((1, 1, 3, 20))):
                pk = 1 + saver + SAVERS * chance.randrange(rows // SAVERS)
                if chance.random() < 0.2:
                    Note.objects.filter(pk=pk).delete()
                else:
                    text = f"n{pk}v{version} {' '.join(chance.choices(WORDS, k=chance.randrange(1, 20)))}"
                    Note(pk=pk, text=text, version=version).save()
            if chance.random() < 0.05:
                raise RuntimeError("roll back")
        board.say(saver, misses=NoteIndex.instance.misses_change())
        time.sleep(0.002)


def rebuild_again_and_again():
    """Rebuild until killed."""
    from django.db import connection

    from tests.chaos.search.models import NoteIndex

    connection.close()
    while True:
        with suppress(Exception):
            NoteIndex.instance.rebuild()
        time.sleep(0.3)


def differences():
    """Return what differs between the table and the index: records, and members of words, values and sorts."""
    from redis_kit.core import connections
    from tests.chaos.search.models import Note, NoteIndex

    index = NoteIndex.instance
    client, store = connections.client("default"), index.store
    shape = index._run(store.generations.read())
    generation = shape.active[0]
    ids = [each.id for each in shape.generations]  # the next rebuild drops that of one that was killed
    docs, words, stats = store.parts(generation)
    pairs = client.call("HGETALL", docs)
    records = {id.decode(): record[8:].decode() for id, record in zip(pairs[::2], pairs[1::2], strict=True)}
    expected = {str(row.pk): index.document(row) for row in Note.objects.all()}
    average = float(client.call("HGET", stats, "average") or 1)
    members = defaultdict(dict)
    for id, document in expected.items():
        for end, score in (*document.impacts(average).items(), *document.sorts.items()):
            members[end][id] = float(score)
        for end in document.values:
            members[end][id] = 0.0
    wrong = [f"missing {id}" for id in expected.keys() - records.keys()]
    wrong += [f"not deleted {id}" for id in records.keys() - expected.keys()]
    wrong += [f"stale {id}" for id in expected.keys() & records.keys() if expected[id].record != records[id]]
    stored = {end.decode() for end in client.call("ZRANGE", words, 0, -1)}
    wrong += [f"lexicon {end}" for end in stored ^ members.keys()]
    for end, scores in members.items():
        reply = client.call("ZRANGE", store.prefix(generation) + end, 0, -1, "WITHSCORES")
        found = {id.decode(): float(score) for id, score in zip(reply[::2], reply[1::2], strict=True)}
        wrong += [f"{end}: {scores} is {found}"] if found != scores else []
    sizes = client.call("HGET", store.key("state"), f"items:{generation.id}:1")
    counts = f"{len(expected)} {len(members)} {sum(map(len, members.values()))}"
    wrong += [f"counts {sizes} for {counts}"] if expected and sizes.decode() != counts else []
    strays = [key for key in _keys(client) if _generation(key) not in {None, *ids}]
    return len(expected), wrong + [f"left over {key}" for key in strays]


def _keys(client):
    return [key.decode() for key in client.call("KEYS", "rk:{search:*")]


def _generation(key):
    return next((part for part in key.split(":") if len(part) == 16), None)


def run(server, rows, seed, seconds, restart_share=0.15):
    """Return the kills and restarts, and how many rebuilds were seen to be complete."""
    from tests.chaos.search.models import NoteIndex

    board, chance = Board(), random.Random(seed)
    NoteIndex.instance.rebuild()
    workers = {
        **{
            f"saver {number}": lambda n=number: save_rows(board, n, rows, random.Random(f"{seed} {n} {time.time()}"))
            for number in range(SAVERS)
        },
        "rebuilder": rebuild_again_and_again,
    }
    pids = {name: fork(work) for name, work in workers.items()}
    kills = restarts = 0
    generations, ended = set(), time.monotonic() + seconds
    try:
        while time.monotonic() < ended:
            time.sleep(chance.uniform(0.05, 0.5))
            # Restarts end earlier: after each, the index is complete again only by a rebuild.
            if chance.random() < restart_share and time.monotonic() < ended - seconds / 2:
                server.restart()
                restarts += 1
                board.settle()
            else:
                name = chance.choice([*pids])
                os.kill(pids[name], signal.SIGKILL)
                os.waitpid(pids[name], 0)
                pids[name] = fork(workers[name])
                kills += 1
            with suppress(Exception):
                generations.add(NoteIndex.instance._run(NoteIndex.instance.generations.read()).active)
        board.settle()
    finally:
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return kills, restarts, len(generations)


def settle_index():
    """Do what an operator does: write what waits, and rebuild if a change was missed. Return whether it was."""
    from tests.chaos.search.models import NoteIndex

    index, deadline = NoteIndex.instance, time.monotonic() + 20
    while True:
        with suppress(Exception):
            index.refresh()
            if not index.info().waiting:
                break
        if time.monotonic() > deadline:
            raise SystemExit("Changes still wait.")
        time.sleep(0.05)
    missed = not index.info().complete
    while not index.info().complete:
        with suppress(Exception):
            index.rebuild()
    index._run(index.store.clean())
    return missed


def set_up(folder, connection):
    """Configure Django with a database in a file, and create the table."""
    import django
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "rows.db", "OPTIONS": {"timeout": 20}}
    settings.configure(
        INSTALLED_APPS=["redis_kit", "tests.chaos.search"],
        DATABASES={"default": database},
        USE_TZ=True,
        SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is",
        REDIS_KIT={"CONNECTIONS": {"default": connection}},
        LOGGING_CONFIG=None,
    )
    django.setup()
    from django.db import connection as rows

    from redis_kit.core.indexes import generations, row_index
    from tests.chaos.search.models import Note

    generations.LEASE_MS = row_index.LEASE_MS = LEASE_MS
    row_index.GRACE = GRACE
    with rows.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode = WAL")
    with rows.schema_editor() as editor:
        editor.create_model(Note)
    rows.close()


def leave_rebuilds_alone():
    """Put a bug in: the generation of a rebuild does not get the changes of others."""
    from redis_kit.search.store import SearchStore

    write = SearchStore.write

    def write_to_active(self, documents, gone, writer, token, rebuild=""):
        shape = yield from self.generations.read()
        if shape.shadow and not rebuild:
            yield from self._write_to(
                shape.active[0], shape, [*documents.items(), *((id, None) for id in gone)], writer, token
            )
            return
        yield from write(self, documents, gone, writer, token, rebuild)

    SearchStore.write = write_to_active


def main(arguments):
    """Run it, and return the exit code."""
    from tests.fixtures.process import Server

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--broken", action="store_true")
    options, folder = parser.parse_args(arguments), Path(tempfile.mkdtemp())
    # The file stays short, so that the server starts within seconds.
    durable = ("--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb")
    server = Server(tcp=True, persistence=True, data_dir=folder / "data", extra_args=durable)
    try:
        set_up(folder, server.connection)
        if options.broken:
            leave_rebuilds_alone()
        # After a restart a missed change is told, and a rebuild at the end would hide what the bug has done.
        share = 0 if options.broken else 0.15
        kills, restarts, generations = run(server, options.rows, options.seed, options.seconds, share)
        missed = settle_index()
        count, wrong = differences()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{kills} kills, {restarts} restarts, {generations} generations seen; rebuilt at the end: {missed}")
    print(f"{count:,} documents; missing, doubled or stale: {len(wrong)} {wrong[:5]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
