"""The servers: their state, what to change there, and the keys of each component."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.operations.keyspace import ComponentMemory as ComponentMemory
    from redis_kit.operations.keyspace import KeyInfo as KeyInfo
    from redis_kit.operations.keyspace import KeyPage as KeyPage
    from redis_kit.operations.keyspace import component_memory as component_memory
    from redis_kit.operations.keyspace import find_keys as find_keys
    from redis_kit.operations.server import Advice as Advice
    from redis_kit.operations.server import ServerReport as ServerReport
    from redis_kit.operations.server import SlowCommand as SlowCommand
    from redis_kit.operations.server import advice as advice
    from redis_kit.operations.server import server_reports as server_reports

_PUBLIC: dict[str, tuple[str, ...]] = {
    "keyspace": ("ComponentMemory", "KeyInfo", "KeyPage", "component_memory", "find_keys"),
    "server": ("Advice", "ServerReport", "SlowCommand", "advice", "server_reports"),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
