"""``manage.py rk_bloom``: lists filters, and rebuilds those of models."""

import argparse
import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.bloom import synchronization
from redis_kit.bloom.errors import ParameterMismatch, RebuildLost, RebuildRunning
from redis_kit.bloom.inspection import FilterInfo, Filters
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf, terminal
from redis_kit.core.text import byte_size, clean, did_you_mean

ACTIONS = {
    "list": "list filters by name",
    "info": "show one filter",
    "rebuild": "read the values of a model's field again; from then on its filter is asked",
}
TITLES = ("FILTER", "ITEMS", "FILL", "LAYERS", "ERROR", "MEMORY", "COMPLETE")
WIDTH = 30  # characters of the bar


class Command(terminal.KitCommand):
    """List, show and rebuild filters."""

    actions = ACTIONS
    help = "Show Bloom filters, and rebuild those of models."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for action, about in ACTIONS.items():
            subparser = actions.add_parser(action, help=about)
            if action != "list":
                about_name = "name of the filter; of a model such as shop.Product.pk"
                subparser.add_argument("name", type=terminal.name, metavar="NAME", help=about_name)
            if action != "rebuild":
                subparser.add_argument(
                    "--using", type=terminal.alias, help="alias of the connection (default: that of the settings)"
                )
            subparser.add_argument("--json", action="store_true", help="print JSON")
            for option in terminal.EVERYWHERE:
                subparser.add_argument(option, help=argparse.SUPPRESS, default=argparse.SUPPRESS)
        actions.choices["list"].add_argument(
            "--limit", type=terminal.whole(1, 1000), default=100, help="number of lines, 1 to 1,000 (default: 100)"
        )

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action. Exit code 1 if there is no filter with this name, or if it can't be rebuilt."""
        with terminal.failing():
            getattr(self, f"_{action}")(**options)

    def _list(self, *, using: str | None, limit: int, **options: Any) -> None:
        total, filters = Filters(using or conf.section(BloomSettings).USING).read(0, limit)
        if options["json"]:
            self.stdout.write(json.dumps([info._asdict() for info in filters], indent=2))
        elif not filters:
            self.stdout.write("There are no filters.")
        else:
            for line in terminal.aligned([TITLES, *map(_row, filters)], right=range(1, 6)):
                self.stdout.write(line)
            if total > limit:
                self.stdout.write(f"{total - limit:,} more; --limit shows them.")

    def _info(self, *, name: str, using: str | None, **options: Any) -> None:
        info = Filters(using or conf.section(BloomSettings).USING).find(name)
        if info is None:
            raise CommandError(f"There is no filter {clean(name)}.")
        if options["json"]:
            self.stdout.write(json.dumps(info._asdict(), indent=2))
        else:
            for title, text in zip(TITLES, _row(info), strict=True):
                self.stdout.write(f"{title.capitalize():10}{clean(text)}")

    def _rebuild(self, *, name: str, **options: Any) -> None:
        chosen = _model_filter(name)
        total = chosen.model._base_manager.count() if sys.stderr.isatty() else 0
        try:
            count = chosen.rebuild(progress=lambda done: self._progress(done, total))
        except (RebuildRunning, RebuildLost, ParameterMismatch) as error:
            raise CommandError(clean(str(error))) from error
        self.report(
            f"{chosen.name}: {count:,} values.", {"name": chosen.name, "values": count}, as_json=options["json"]
        )

    def _progress(self, done: int, total: int) -> None:
        if total:
            share = min(1.0, done / total)
            bar = "#" * round(share * WIDTH)
            self.stderr.write(f"\r[{bar:{WIDTH}}] {share:4.0%} {done:,}", ending="" if done < total else "\n")


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


def _model_filter(name: str) -> ModelFilter:
    filters = {each.name: each for each in synchronization.indexes() if isinstance(each, ModelFilter)}
    label, _, field = name.lower().rpartition(".")
    for each in filters.values():
        if each.model._meta.label_lower == label and field in (each.field.name, "pk" * each.field.primary_key):
            return each
    hint = did_you_mean(name, filters, f"There are: {', '.join(sorted(filters)) or 'none'}.")
    raise CommandError(f"No model has a filter {clean(name)}. {hint}", returncode=1)
