"""Which queues there are: noted once per process and queue, so that nobody has to search for them."""

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings

MOST = 1000
REGISTER = scripts.load("redis_kit.queues.store", "register_queue")

noted: set[tuple[str, str]] = set()  # connection, and the beginning of the queue's keys


def key() -> str:
    """Return the key of the names' set. It is in a slot of its own."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues}}:names"


def note(name: str) -> ScriptCall:
    """Return the step that notes a queue."""
    return REGISTER([key()], [name, MOST])
