"""A component of a project: a panel with a stock in Redis, and a panel that shows the content that a test gives it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redis_kit.core import conf, connections
from redis_kit.core.component import Component
from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Bars, Content, Figure, Panel, Table, action
from redis_kit.core.settings import KitSettings

MIRROR: list[Any] = []  # content, or an error to raise at that place
FAILURE: list[Exception] = []  # what the next sale ends with
ASKED: list[str] = []  # slugs of panels, as they are asked
TITLE = ["Mirror"]


@dataclass(frozen=True)
class PartsSettings(conf.Section):
    name = "PARTS"


class Parts(Component):
    settings = PartsSettings
    panels = ("tests.dashboard.support.parts.StockPanel", "tests.dashboard.support.parts.MirrorPanel")


def key(part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{parts}}:{part}"


def call(*command: Any) -> Any:
    return connections.client().call(*command)


class StockPanel(Panel):
    """How many of each part are left."""

    slug = "stock"
    title = "Stock"

    def content(self) -> Iterator[Content]:
        ASKED.append(self.slug)
        flat = [item.decode() for item in call("HGETALL", key("stock"))]
        left = dict(zip(flat[::2], map(int, flat[1::2]), strict=True))
        total = sum(left.values())
        yield Figure("In stock", total, "of all parts", alarm=total < 10)
        rows = [(name, count, "shelf 1") for name, count in sorted(left.items())]
        yield Table("Parts", ("Part", "Left", "Where"), rows, empty="No part is left.", actions=("sell", "clear"))
        yield Bars("Left", [(name, count) for name, count, _where in rows])

    @action("Sell one", permission="redis_kit.manage_queues", asks="Part")
    def sell(self, part: str) -> str:
        if FAILURE:
            raise FAILURE[0]
        if len(part) > 100:
            raise InvalidValue("The part's name is over 100 characters.")
        return f"{part}: {call('HINCRBY', key('stock'), part, -1)} are left."

    @action("Clear", permission="redis_kit.release_locks", confirm=True, asks="Part")
    def clear(self, part: str) -> str:
        return f"{part}: {call('HDEL', key('stock'), part)} cleared."

    @action("Restock", permission="redis_kit.manage_queues", asks="")
    def restock(self, value: str) -> str:
        call("HSET", key("stock"), "bolt", 100)
        return f"Restocked{value}."


class MirrorPanel(Panel):
    """A panel with the content that a test gives it."""

    slug = "mirror"

    @property
    def title(self) -> str:  # type: ignore[override]
        return TITLE[0]

    def content(self) -> Iterator[Content]:
        ASKED.append(self.slug)
        for one in MIRROR:
            if isinstance(one, Exception):
                raise one
            yield one() if callable(one) else one

    @action("Reflect", permission="redis_kit.manage_queues", asks="What")
    def reflect(self, value: str) -> str:
        return value
