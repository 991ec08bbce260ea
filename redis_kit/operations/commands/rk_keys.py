"""``manage.py rk_keys``: the keys of this project, by component or by a text in their names."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.component import components
from redis_kit.core.errors import InvalidValue
from redis_kit.core.terminal import aligned, duration
from redis_kit.core.text import byte_size, clean, did_you_mean
from redis_kit.operations.keyspace import LIMIT, ComponentMemory, KeyInfo, component_memory, find_keys

OTHER = "other keys with this prefix"


def size_of(row: ComponentMemory) -> str:
    """Return the memory of a component in words."""
    return byte_size(row.size) if row.size else "?"


class Command(terminal.KitCommand):
    """List keys. Values are never read."""

    help = "Show the memory of each component, or with a text or a component the keys. Values are never read."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add("text", nargs="?", metavar="TEXT", help="text in the names of keys; *, ? and [a-z] are wildcards")
        add("--component", action=terminal.Once, metavar="NAME", help="list the keys of one component, such as locks")
        most = f"number of keys, {LIMIT[0]} to {LIMIT[1]:,} (default: 100)"
        add("--limit", type=terminal.whole(*LIMIT), default=100, help=most)
        add("--cursor", default="", help="continue a search: the cursor that it printed")
        add("--json", action="store_true", help="print JSON, with times in seconds and sizes in bytes")
        add("--using", type=terminal.alias, default="default", help="alias of the connection (default: default)")
        self.parser = parser

    def handle(self, *args: Any, text: str | None, component: str | None, using: str, **options: Any) -> None:
        """Print the keys. Exit code 1 if none matches."""
        labels = [each.label for each in components()]
        if component is not None and component not in labels:
            hint = did_you_mean(component, labels, f"There are {', '.join(labels)}.")
            self.parser.error(f"{component!a} is not a component. {hint}")
        with terminal.failing():
            if text is None and component is None:
                if options["cursor"]:
                    self.parser.error("--cursor continues a search: give the TEXT or the --component of that search.")
                self._components(using, as_json=options["json"])
                return
            try:
                self._keys(text or "", component or "", using, **options)
            except InvalidValue as error:
                self.parser.error(clean(str(error)))

    def _components(self, using: str, *, as_json: bool) -> None:
        rows = component_memory(using, profile="worker")
        if as_json:
            self.write_json([row._asdict() for row in rows])
            return
        lines = [(row.component or OTHER, f"{row.keys:,}", size_of(row)) for row in rows]
        self.write_lines(aligned([("COMPONENT", "KEYS", "MEMORY"), *lines], right=(1, 2)))
        if any(row.share < 1 for row in rows):
            self.stdout.write("Estimated from a part of the keys; large keys among the others may be missing.")

    def _keys(
        self, text: str, component: str, using: str, *, limit: int, cursor: str, json: bool, **options: Any
    ) -> None:
        keys: list[KeyInfo] = []
        while True:
            page = find_keys(
                text,
                component=component,
                cursor=cursor,
                limit=limit - len(keys),
                using=using,
                profile="worker",
            )
            keys += page.keys
            cursor = page.cursor
            if not cursor or len(keys) >= limit:
                break
        if json:
            self.write_json({"keys": [key._asdict() for key in keys], "cursor": cursor, "share": round(page.share, 4)})
        else:
            self.write_lines(_lines(keys, cursor))
        if not keys:
            raise CommandError("No key matches.")


def _lines(keys: list[KeyInfo], cursor: str) -> Iterator[str]:
    if keys:
        rows = [
            (
                key.type,
                "?" if key.size is None else byte_size(key.size),
                "never" if key.expires_in is None else duration(key.expires_in),
                key.name,
            )
            for key in keys
        ]
        yield from aligned([("TYPE", "MEMORY", "EXPIRES IN", "KEY"), *rows], right=(1,))
    if cursor:
        yield f"There may be more. Continue with: --cursor {cursor}"
