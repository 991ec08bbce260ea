"""The base of commands that list indexes, clear them, and rebuild those of models."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser
from django.db import router
from django.db.models import QuerySet
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidValue, ParameterMismatch, RebuildLost, RebuildRunning
from redis_kit.core.indexes.inventory import MOST, Inventory
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.text import clean


class IndexCommand(terminal.ActionCommand):
    """List, clear and rebuild indexes of a kind. A subclass reads them, and has the titles and the cells of a line."""

    inventory: ClassVar[Inventory]
    titles: ClassVar[Sequence[str]]
    empty: ClassVar[str] = "There are no indexes."
    #: What a name is made of, for the help.
    example: ClassVar[str] = "model and field, such as shop.Product.pk"
    actions: Mapping[str, str] = {
        "list": "list them by name",
        "rebuild": "read the rows of a model again, and switch to them in one step",
        "clear": "delete one with all that it holds",
    }

    def cells(self, index: Any) -> Sequence[str]:
        """Return the cells of a line."""
        raise NotImplementedError

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        parser.add_argument("--json", action="store_true", help="print JSON")
        if action == "list":
            whole = terminal.whole(1, MOST)
            parser.add_argument(
                "--limit", type=whole, default=100, help=f"number of lines, 1 to {MOST:,} (default: 100)"
            )
        elif action == "clear":
            parser.add_argument("name", metavar="NAME", type=terminal.name, help="name of the index")
            terminal.add_no_input(parser)
        else:
            parser.add_argument("name", metavar="NAME", help=self.example)
        if action in ("list", "clear"):
            parser.add_argument("--using", type=terminal.alias, help="connection (default: all)")

    def _list(self, *, using: str | None, limit: int, **options: Any) -> None:
        listed = self.inventory.read_all(using)
        total, indexes = listed.total, listed.infos[:limit]
        if options["json"]:
            self.write_json([index._asdict() for index in indexes])
        elif not indexes and not listed.unavailable:
            self.stdout.write(self.empty)
        else:
            rows = [self.titles, *map(self.cells, indexes)]
            self.write_lines(terminal.aligned(rows, right=range(1, len(self.titles) - 1)))
            if total > limit:
                shown = "them" if total <= MOST else f"at most {MOST:,}"
                self.stdout.write(f"{total - limit:,} more; --limit shows {shown}.")
        listed.check_available()

    def _clear(self, *, name: str, using: str | None, no_input: bool, **options: Any) -> None:
        try:
            with translation.override(None):
                info = self.inventory.find_one(name, using, any_case=True)
        except InvalidValue as error:
            raise CommandError(clean(str(error))) from error
        count = self.inventory.size(info)
        if not no_input:
            question = f"This deletes {count:,} entries on the connection {info.using}. Type the name to go on: "
            terminal.confirm(question, name, nothing="Nothing was deleted")
        self.inventory.clear(info)
        self.report(f"{clean(info.name)} was deleted.", {"name": info.name, "entries": count}, as_json=options["json"])

    def _rebuild(self, *, name: str, **options: Any) -> None:
        try:
            index = find_index(self.inventory.kind, name)
            rows: QuerySet[Any] = QuerySet(index.model, using=router.db_for_write(index.model))
            total = rows.count() if self.stderr.isatty() else 0
            count = index.rebuild(progress=terminal.progress_bar(self.stderr, total))
        except (InvalidValue, RebuildRunning, RebuildLost, ParameterMismatch) as error:
            raise CommandError(clean(str(error))) from error
        self.report(f"{index.name}: {count:,} rows.", {"name": index.name, "values": count}, as_json=options["json"])
