"""The keys of workflows. Those of one workflow are in a slot of their own. Scripts name them, with what they hold."""

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


def workflow_key(id: str, part: str = "") -> str:
    """Return a key of a workflow. No queue has it: the name of a queue never holds a colon in a key."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues:workflow:{id}}}:{part}"


def list_key(part: str = "") -> str:
    """Return the key of a list of all workflows, in the slot of the names of queues."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues}}:workflows:{part}"
