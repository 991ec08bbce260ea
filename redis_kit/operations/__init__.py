"""The servers: their state, what to change there, and the keys of each component."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.operations.keys.sample import ComponentMemory, component_memory
    from redis_kit.operations.keys.search import KeyInfo, KeyPage, find_keys
    from redis_kit.operations.server.advice import Advice, advice
    from redis_kit.operations.server.report import ServerReport, SlowCommand, server_reports

__all__ = [
    "Advice",
    "ComponentMemory",
    "KeyInfo",
    "KeyPage",
    "ServerReport",
    "SlowCommand",
    "advice",
    "component_memory",
    "find_keys",
    "server_reports",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "keys.sample": ("ComponentMemory", "component_memory"),
        "keys.search": ("KeyInfo", "KeyPage", "find_keys"),
        "server.advice": ("Advice", "advice"),
        "server.report": ("ServerReport", "SlowCommand", "server_reports"),
    },
)
