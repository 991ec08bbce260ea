"""No document of an index is lost, doubled or stale while processes and the server are killed.

``python -m tests.chaos search.kill_loop 2000 --seconds 60`` has three processes that save, change and delete 2,000
rows, and one that rebuilds the index. All are killed at random moments. The server writes each change to its disk
before it answers, and is killed too. Then the index is compared with the table: each record, each word, each value.
``--broken`` leaves rebuilds without the changes of others: the loop must find that.
"""

import mmap
import random
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from django.db import connection, models, transaction

from redis_kit.core import connections
from redis_kit.core.indexes import generations, row_index
from redis_kit.search import Facet, SearchIndex, Sort, Text
from tests.chaos.engine import program
from tests.chaos.engine.crew import Crew, Forked
from tests.chaos.engine.faults import Faults, restart, weighted
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import create_tables, stage

SAVERS = 3
LEASE_MS = 1500  # so that a kill need not be waited out for a minute
GRACE = 0.5  # seconds until a change counts as committed whose process died
WORDS = [f"word{number}" for number in range(60)]
KINDS = ("lost", "doubled", "stale")
# The file stays short, so that the server starts within seconds.
SHORT = ("--auto-aof-rewrite-min-size", "4mb")


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many rows are saved, and for how long."""

    rows: int
    seconds: float = 60.0
    broken: bool = option(False, "put a bug in")


class Note(models.Model):
    """A row that is saved again and again; its text names the version."""

    text = models.TextField()
    version = models.IntegerField()

    class Meta:
        app_label = "app"

    def __str__(self):
        return self.text


class NoteIndex(SearchIndex):
    """The index that must not lose, double or keep anything."""

    model = Note
    text = Text()
    parity = Facet()
    version = Sort()

    def prepare_parity(self, row):
        """Return a value that changes with each version."""
        return row.version % 3


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


def save_rows(board, saver, rows, chance):
    """Save, change and delete rows, some in transactions, until killed."""
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
    connection.close()
    while True:
        with suppress(Exception):
            NoteIndex.instance.rebuild()
        time.sleep(0.3)


def differences():
    """Return what differs between the table and the index: records, and members of words, values and sorts."""
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
    wrong = [f"lost {id}" for id in expected.keys() - records.keys()]
    wrong += [f"doubled {id}: it was deleted" for id in records.keys() - expected.keys()]
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


def run(plan):
    """Save and rebuild while processes and the server are killed; then compare."""
    with stage("always", arguments=SHORT) as place:
        generations.LEASE_MS = row_index.LEASE_MS = LEASE_MS
        row_index.GRACE = GRACE
        create_tables()
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode = WAL")
        connection.close()
        if plan.broken:
            leave_rebuilds_alone()
        faults, count = kill(plan, place)
        missed = settle_index()
        documents, wrong = differences()
    found = {kind: [text for text in wrong if text.startswith(kind)] for kind in KINDS}
    found["different"] = [text for text in wrong if not text.startswith(KINDS)]
    figures = f"{faults}; {count} generations seen; rebuilt at the end: {missed}; {documents:,} documents"
    return Outcome(figures, found)


def kill(plan, place):
    """Return the faults, and how many rebuilds were seen to be complete."""
    board, chance, seen = Board(), random.Random(plan.seed), set()
    NoteIndex.instance.rebuild()
    starts = {
        f"saver {n}": lambda n=n: Forked(
            lambda: save_rows(board, n, plan.rows, random.Random(f"{plan.seed} {n} {time.time()}"))
        )
        for n in range(SAVERS)
    }
    crew = Crew(starts | {"rebuilder": lambda: Forked(rebuild_again_and_again)})
    place.at_the_end(crew.end)

    def restarted():
        restart(place.server)
        board.settle()

    # Each rebuild of a bug comes to its end, which alone shows what it lacks.
    names = [name for name in crew.processes if not plan.broken or name != "rebuilder"]
    kinds = {"kill": lambda: crew.replace(chance.choice(names)), "restart": restarted}
    # After a restart a missed change is told, and a rebuild at the end would hide what a bug has done. Restarts end
    # earlier than kills, too: after each, the index is complete again only by a rebuild.
    shares = [{"kill": 85, "restart": 0 if plan.broken else 15}, {"kill": 1}]
    both = [Faults(kinds, weighted(chance, share), chance=chance, calm=(0.05, 0.5)) for share in shares]
    for faults in both:
        half = time.monotonic() + plan.seconds / 2
        while time.monotonic() < half:
            faults.next()
            with suppress(Exception):
                seen.add(NoteIndex.instance._run(NoteIndex.instance.generations.read()).active)
    board.settle()
    crew.end()
    both[0].count.update(both[1].count)
    return both[0], len(seen)


def settle_index():
    """Do what an operator does: write what waits, and rebuild if a change was missed. Return whether it was."""
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
