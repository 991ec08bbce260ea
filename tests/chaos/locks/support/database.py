"""The database of a history: one row per lock, and a trigger that keeps what was carried out, in its order."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.chaos.locks.support.history import Event

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE guarded (name TEXT PRIMARY KEY, fence BIGINT NOT NULL DEFAULT 0, writer TEXT NOT NULL DEFAULT '');
CREATE TABLE kept (turn INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, fence BIGINT, writer TEXT);
CREATE TRIGGER keep AFTER UPDATE ON guarded
    BEGIN INSERT INTO kept (name, fence, writer) VALUES (new.name, new.fence, new.writer); END;
"""


def create(path: Path, names: Iterable[str] = ()) -> None:
    """Make the tables, and a row for each name."""
    with _opened(path) as database:
        database.executescript(TABLES)
    add(path, names)


def add(path: Path, names: Iterable[str]) -> None:
    """Make a row for each name."""
    with _opened(path) as database:
        database.executemany("INSERT INTO guarded (name) VALUES (?)", [(name,) for name in names])


def kept(path: Path) -> list[Event]:
    """Return what the database carried out."""
    with _opened(path) as database:
        found = database.execute("SELECT turn, name, fence, writer FROM kept ORDER BY turn").fetchall()
    return [Event("kept", 0, writer, turn, name, fence) for turn, name, fence, writer in found]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        yield database
