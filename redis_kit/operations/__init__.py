"""The servers: their state, what to change there, and the keys of each component."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.operations.keys.sample import ComponentMemory as ComponentMemory
    from redis_kit.operations.keys.sample import component_memory as component_memory
    from redis_kit.operations.keys.search import KeyInfo as KeyInfo
    from redis_kit.operations.keys.search import KeyPage as KeyPage
    from redis_kit.operations.keys.search import find_keys as find_keys
    from redis_kit.operations.server.advice import Advice as Advice
    from redis_kit.operations.server.advice import advice as advice
    from redis_kit.operations.server.report import ServerReport as ServerReport
    from redis_kit.operations.server.report import SlowCommand as SlowCommand
    from redis_kit.operations.server.report import server_reports as server_reports

_PUBLIC: dict[str, tuple[str, ...]] = {
    "keys.sample": ("ComponentMemory", "component_memory"),
    "keys.search": ("KeyInfo", "KeyPage", "find_keys"),
    "server.advice": ("Advice", "advice"),
    "server.report": ("ServerReport", "SlowCommand", "server_reports"),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
