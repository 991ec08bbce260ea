"""``manage.py rk_bloom``: lists filters, and rebuilds those of models."""

import argparse
import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.bloom.inspection import FilterInfo, list_filters
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf, terminal
from redis_kit.core.errors import InvalidValue, ParameterMismatch, RebuildLost, RebuildRunning
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.text import byte_size, clean

ACTIONS = {
    "list": "list filters by name",
    "rebuild": "read the values of a model's field again; from then on its filter is asked",
}
TITLES = ("FILTER", "VALUES", "FILL", "LAYERS", "ERROR", "MEMORY", "COMPLETE")


class Command(terminal.KitCommand):
    """List and rebuild filters."""

    actions = ACTIONS
    help = "Show Bloom filters, and rebuild those of models."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for action, about in ACTIONS.items():
            subparser = actions.add_parser(action, help=about)
            subparser.add_argument("--json", action="store_true", help="print JSON")
            for option in terminal.EVERYWHERE:
                subparser.add_argument(option, help=argparse.SUPPRESS, default=argparse.SUPPRESS)
        actions.choices["list"].add_argument(
            "--using", type=terminal.alias, help="alias of the connection (default: that of the settings)"
        )
        actions.choices["list"].add_argument(
            "--limit", type=terminal.whole(1, 1000), default=100, help="number of lines, 1 to 1,000 (default: 100)"
        )
        actions.choices["rebuild"].add_argument("name", metavar="NAME", help="model and field, such as shop.Product.pk")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action. Exit code 1 if there is no filter with this name, or if it can't be rebuilt."""
        with terminal.failing():
            getattr(self, f"_{action}")(**options)

    def _list(self, *, using: str | None, limit: int, **options: Any) -> None:
        total, filters = list_filters(using or conf.section(BloomSettings).USING, count=limit)
        if options["json"]:
            self.stdout.write(json.dumps([info._asdict() for info in filters], indent=2))
        elif not filters:
            self.stdout.write("There are no filters.")
        else:
            for line in terminal.aligned([TITLES, *map(_row, filters)], right=range(1, 6)):
                self.stdout.write(line)
            if total > limit:
                self.stdout.write(f"{total - limit:,} more; --limit shows them.")

    def _rebuild(self, *, name: str, **options: Any) -> None:
        try:
            index = find_index(ModelFilter, name)
            rows = index.model._base_manager.count() if self.stderr.isatty() else 0
            count = index.rebuild(progress=terminal.progress_bar(self.stderr, rows))
        except (InvalidValue, RebuildRunning, RebuildLost, ParameterMismatch) as error:
            raise CommandError(clean(str(error))) from error
        self.report(f"{index.name}: {count:,} values.", {"name": index.name, "values": count}, as_json=options["json"])


def _row(info: FilterInfo) -> tuple[str, ...]:
    return (
        info.name,
        f"{info.items:,}",
        f"{info.fill:.0%}",
        str(info.layers),
        f"{info.error:.3g}",
        byte_size(info.memory),
        "rebuilding" if info.rebuilding else "yes" if info.complete else "no",
    )
