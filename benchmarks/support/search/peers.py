"""Other search engines over the same words: SQLite's FTS5, PostgreSQL's full text, and walrus."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

WALRUS = Path(__file__).parents[1] / "peers" / "with_walrus_search.py"
Texts = Mapping[int, tuple[str, str]]


class Measured(NamedTuple):
    """A peer with its documents: how long they took, the bytes that they take, and a connection."""

    name: str
    rate: float
    size: float
    connection: Any


@contextlib.contextmanager
def fts5(texts: Texts) -> Iterator[Measured]:
    """Fill a table of FTS5 in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fts5.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE VIRTUAL TABLE pages USING fts5(title, body)")
        began = time.perf_counter()
        rows = ((id, title, body) for id, (title, body) in texts.items())
        connection.executemany("INSERT INTO pages(rowid, title, body) VALUES (?, ?, ?)", rows)
        connection.commit()
        rate = len(texts) / (time.perf_counter() - began)
        yield Measured("SQLite FTS5", rate, path.stat().st_size / len(texts), connection)
        connection.close()


def ask_fts5(connection: Any, words: Sequence[str], *, is_phrase: bool) -> list[Any]:
    """Return the best 20 documents."""
    query = f'"{" ".join(words)}"' if is_phrase else " OR ".join(f'"{word}"' for word in words)
    statement = "SELECT rowid FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 3.0, 1.0) LIMIT 20"
    return list(connection.execute(statement, [query]))


@contextlib.contextmanager
def postgresql(texts: Texts) -> Iterator[Measured | None]:
    """Fill a table of a PostgreSQL server of its own, with a GIN index; None if there is no server to start."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        yield None
        return
    import psycopg

    folder = Path(tempfile.mkdtemp())
    prefix: list[str] = []
    if os.geteuid() == 0:
        prefix = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")
    initdb = programs[-1].with_name("initdb")
    options = ["--pgdata", folder / "data", "--username", "bench", "--auth", "trust", "--encoding", "UTF8", "--no-sync"]
    subprocess.run([*prefix, initdb, *options, "--locale", "C.UTF-8"], check=True, stdout=subprocess.DEVNULL)
    command = [*prefix, programs[-1], "-D", folder / "data", "-k", folder, "-c", "listen_addresses="]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with contextlib.closing(_connected(psycopg, folder)) as connection:
            connection.execute("CREATE TABLE pages (id int PRIMARY KEY, words tsvector)")
            began = time.perf_counter()
            with connection.cursor() as cursor:
                statement = (
                    "INSERT INTO pages VALUES (%s, "
                    "setweight(to_tsvector('simple', %s), 'A') || setweight(to_tsvector('simple', %s), 'D'))"
                )
                cursor.executemany(statement, [(id, title, body) for id, (title, body) in texts.items()])
            connection.execute("CREATE INDEX ON pages USING gin (words)")
            rate = len(texts) / (time.perf_counter() - began)
            connection.execute("VACUUM ANALYZE pages")
            (size,) = connection.execute("SELECT pg_total_relation_size('pages')").fetchone()
            yield Measured("PostgreSQL", rate, size / len(texts), connection)
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def ask_postgresql(connection: Any, words: Sequence[str], *, is_phrase: bool) -> list[Any]:
    """Return the best 20 documents."""
    query = (" <-> " if is_phrase else " | ").join(f"'{word}'" for word in words)
    statement = (
        "SELECT id FROM pages, to_tsquery('simple', %s) query WHERE words @@ query "
        "ORDER BY ts_rank(words, query) DESC LIMIT 20"
    )
    return list(connection.execute(statement, [query]).fetchall())


def walrus(python: str, url: str, texts: Texts, queries: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return what walrus needs, in an environment of its own: documents a second, and times of queries."""
    given = json.dumps({"url": url, "texts": list(texts.items()), "queries": queries})
    ended = subprocess.run(
        [python, str(WALRUS)], input=given, stdout=subprocess.PIPE, stderr=sys.stderr, check=True, text=True
    )
    measured: dict[str, float] = json.loads(ended.stdout)
    return measured


def _connected(psycopg: Any, folder: Path) -> Any:
    for _ in range(200):
        with contextlib.suppress(psycopg.OperationalError):
            return psycopg.connect(host=str(folder), user="bench", dbname="postgres", autocommit=True)
        time.sleep(0.1)
    raise SystemExit("PostgreSQL did not start.")
