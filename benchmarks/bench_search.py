"""Search over real texts: documents a second, memory, ranking, and the time of queries beside FTS5 and PostgreSQL.

``python -m benchmarks search 100000`` takes 100,000 texts of this machine: manual pages, descriptions of packages, and
Chinese translations. WALRUS names a Python that has walrus; it gets 5,000 of them.
"""

import os
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.support.measurement import site
from benchmarks.support.search import corpus, peers
from benchmarks.support.search.reference import Reference, spearman

QUERIES = 500
FOR_WALRUS = 5000
Texts = dict[int, tuple[str, str]]


def run(count: int = 100_000) -> None:
    """Print all figures for this many documents."""
    chosen = corpus.documents(count)
    with site(one_core=False) as client:
        index = _index(chosen)
        before = client.info("memory")["used_memory"]
        began, before_cpu = time.perf_counter(), _cpus(client)
        index.instance.rebuild()
        seconds = time.perf_counter() - began
        cpu, server_cpu = (1e6 * (now - then) / count for now, then in zip(_cpus(client), before_cpu, strict=True))
        rows = list(index.model.objects.all())
        documents = {str(row.pk): index.instance.document(row) for row in rows}
        texts = {
            row.pk: tuple(" ".join(index.instance.analyzer.words(text)) for text in (row.title, row.body))
            for row in rows
        }
        used = (client.info("memory")["used_memory"] - before) / count
        info = index.instance.info()
        length = sum(len(row.title) + len(row.body) for row in rows) / count
        print(f"{count:,} documents of {length:.0f} characters, {info.words:,} words")
        print(f"rebuild from SQLite: {count / seconds:,.0f} documents/s; memory {used:,.0f} bytes a document")
        print(f"  processor time a document: {cpu:.0f} us in this process, {server_cpu:.0f} us in the server")
        print(f"  the kit's own estimate of the memory: {info.memory / count:,.0f} bytes\n")
        _print_updates(index, rows)
        chance = random.Random(7)
        ranked, three = (
            [chance.sample(words, 3) for words in _words(chance, documents) if len(words) > 3] for _ in range(2)
        )  # results are stored for a minute, so other queries are timed than ranked
        phrases = [_phrase(chance, words) for words in _words(chance, documents) if len(words) > 3]
        _print_ranking(index, documents, ranked)
        print(f"\n{'milliseconds':36}{'p50':>10}{'p99':>10}{'p50 of processor time, p99':>30}")
        times = _print_kit(client, index, three, phrases)
        _print_peers(client, texts, three, phrases, times)


def _cpus(client: Any) -> tuple[float, float]:
    """Return the seconds of processor time of this process and of the server."""
    info = client.info("cpu")
    return time.process_time(), float(info["used_cpu_user"] + info["used_cpu_sys"])


def _index(chosen: Sequence[corpus.Document]) -> Any:
    """Store the rows, and return their index."""
    from django.db import connection

    from benchmarks.support.search.models import Page, PageIndex

    with connection.schema_editor() as editor:
        editor.create_model(Page)
    chance = random.Random(3)
    Page.objects.bulk_create([Page(**each._asdict(), votes=chance.randrange(1000)) for each in chosen], batch_size=500)
    return PageIndex


def _words(chance: random.Random, documents: Mapping[str, Any]) -> list[list[str]]:
    """Return the words of documents that are drawn at random: common words come as often as they are there."""
    drawn = chance.sample(list(documents.values()), QUERIES + 100)
    return [[word for word in each.words.split() if word != "/"] for each in drawn]


def _phrase(chance: random.Random, words: Sequence[str]) -> list[str]:
    length = chance.choice((2, 3))
    first = chance.randrange(len(words) - length)
    return list(words[first : first + length])


def _print_updates(index: Any, rows: Sequence[Any]) -> None:
    changed = rows[:1000]
    for row in changed:
        row.body += " another edition"
    index.model.objects.bulk_update(changed, ["body"], batch_size=200)
    index.instance.commit([str(row.pk) for row in changed])
    began = time.perf_counter()
    index.instance.refresh()
    print(f"update of 1,000 documents: {1000 / (time.perf_counter() - began):,.0f} a second\n")


def _print_ranking(index: Any, documents: Mapping[str, Any], queries: Sequence[Sequence[str]]) -> None:
    reference = Reference(documents)
    ranks, shares = [], []
    for words in queries[:QUERIES]:
        answer = index.search(" ".join(words), limit=1000)
        exact = reference.scores(words)
        found = list(answer.scores)
        if len(found) > 2:
            ranks.append(spearman(list(answer.scores.values()), [exact.get(id, 0.0) for id in found]))
        best = sorted(exact, key=lambda id: -exact[id])[:20]
        least = exact[best[-1]] - 0.05  # documents with equal scores may stand for each other
        shares.append(sum(exact.get(id, 0.0) >= least for id in found[:20]) / len(best))
    print(f"ranking beside exact BM25, {len(ranks)} queries: Spearman mean {sum(ranks) / len(ranks):.4f}, ", end="")
    print(f"median {median(ranks):.4f}, least {min(ranks):.4f}; best 20: {sum(shares) / len(shares):.1%} the same")


def _print_kit(
    client: Any, index: Any, three: Sequence[Sequence[str]], phrases: Sequence[Sequence[str]]
) -> dict[str, float]:
    any_of = [" ".join(words) for words in three]
    quoted = [f'"{" ".join(words)}"' for words in phrases]
    times = {
        "three": _print("kit: three words", [lambda text=text: index.search(text) for text in any_of], client),
        "phrase": _print("kit: phrase", [lambda text=text: index.search(text) for text in quoted], client),
    }
    _print("kit: three words, stored result", [lambda text=text: index.search(text) for text in any_of], client)
    for name, options in (
        ("all three required", {}),
        ("facets", {"facets": ("kind",)}),
        ("boost", {"boost": {"votes": 0.3}}),
        ("order of a sort", {"order": "-votes"}),
        ("fuzzy", {"fuzzy": True}),
    ):
        sign = "+" if not options else ""
        texts = [" ".join(f"{sign}{word}" for word in words) for words in three]
        _print(
            f"kit: three words, {name}",
            [lambda text=text, given=options: index.search(text, **given) for text in texts],
            client,
        )
    return times


def _print(name: str, calls: Sequence[Callable[[], object]], client: Any = None) -> float:
    """Print and return the median time, and with a client the processor time of the slowest, in both processes."""
    times, work = [], []
    for call in calls:
        before = _cpus(client) if client else ()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
        if client:  # INFO itself takes 0.1 ms of it
            work.append(sum(now - then for now, then in zip(_cpus(client), before, strict=True)))
    return _print_times(name, times, work)


def _print_times(name: str, times: Sequence[float], work: Sequence[float] = ()) -> float:
    columns = [1000 * sorted(times)[int(len(times) * share)] for share in (0.5, 0.99)]
    columns += [1000 * sorted(work)[int(len(work) * share)] for share in (0.5, 0.99) if work]
    print(f"{name:36}{''.join(f'{column:10.2f}' for column in columns)}", flush=True)
    return columns[0]


def _print_peers(
    client: Any,
    texts: Mapping[int, Any],
    three: Sequence[Sequence[str]],
    phrases: Sequence[Sequence[str]],
    kit: Mapping[str, float],
) -> None:
    sizes = []
    for open_peer, ask in ((peers.fts5, peers.ask_fts5), (peers.postgresql, peers.ask_postgresql)):
        with open_peer(texts) as peer:
            if peer is None:
                print("PostgreSQL: no server is installed")
                continue
            for name, key, queries in (("three words", "three", three), ("phrase", "phrase", phrases)):
                calls = [
                    lambda words=words, ask=ask, peer=peer, key=key: ask(
                        peer.connection, words, is_phrase=key == "phrase"
                    )
                    for words in queries
                ]
                half = _print(f"{peer.name}: {name}", calls)
                print(f"{'':36}{half / kit[key]:10.1f} times the kit's median")
            sizes.append(f"{peer.name}: {peer.rate:,.0f} documents/s, {peer.size:,.0f} bytes a document on disk")
    if python := os.environ.get("WALRUS"):
        with socket.create_server(("127.0.0.1", 0)) as free:  # walrus gets an address, not a Unix socket
            port = free.getsockname()[1]
        client.config_set("port", port)
        some = dict(list(texts.items())[:FOR_WALRUS])
        answer = peers.walrus(python, f"redis://127.0.0.1:{port}/0", some, three[:100])
        _print_times(f"walrus, {FOR_WALRUS:,}: three words", answer["times"])
        size = sum(client.memory_usage(key, samples=0) for key in client.scan_iter("*walrus*")) / FOR_WALRUS
        sizes.append(f"walrus: {answer['rate']:,.0f} documents/s, {size:,.0f} bytes a document in memory")
    print("\n" + "\n".join(sizes))
