"""A component of a project with buttons that need a typed name: boxes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Content, Effect, Meter, Panel, Table, action

BOXES: dict[str, Any] = {}  # name -> what is in it
DONE: list[tuple[str, ...]] = []


@dataclass(frozen=True)
class VaultSettings(conf.Section):
    name = "VAULT"


class Vault(Component):
    settings = VaultSettings
    panels = ("tests.dashboard.support.vault.VaultPanel",)


def name_of(value: str) -> str:
    number, _, name = value.partition(":")
    if not number.isdigit():
        raise InvalidValue(f"{value} is not a box.")
    return name


def effect_of_resize(value: str) -> str | Effect:
    if value == "gone":
        raise InvalidValue("That box is gone.")
    if value == "any":
        return Effect("The newest box.", next(reversed(BOXES)))
    return f"{value} holds {BOXES.get(value, 'nothing')} <b>now</b>."


class VaultPanel(Panel):
    """The boxes."""

    slug = "vault"
    title = "Vault"

    def content(self) -> Iterator[Content]:
        lease, use = Meter(12.3, 30, wanted=True, shown=timedelta(seconds=12.3)), Meter(2, 5)
        rows = [(name, lease, use, one) for name, one in BOXES.items()]
        values = [f"{number}:{name}" if name != "locked" else "" for number, name in enumerate(BOXES)]
        yield Table("Boxes", ("Box", "Rent", "In use", "Other"), rows, actions=("open", "resize"), values=values)

    @action("Open", permission="redis_kit.release_locks", asks=None, named=name_of, typed=True)
    def open(self, value: str) -> str:
        DONE.append(("open", value))
        return f"{name_of(value)} is open."

    @action("Resize", permission="redis_kit.manage_queues", asks="Box", wants="New size", effect=effect_of_resize)
    def resize(self, value: str, size: str) -> str:
        if size and not size.isdigit():
            raise InvalidValue("The size must be a number.")
        DONE.append(("resize", value, size))
        return f"{value} has {size or 'no'} size."
