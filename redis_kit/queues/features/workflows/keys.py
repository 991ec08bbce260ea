"""The keys of workflows. Those of one workflow are in a slot of their own."""

from typing import NamedTuple

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


class WorkflowKeys(NamedTuple):
    """The keys of one workflow, all in one slot. Scripts name them in their headers, with what they hold."""

    meta: str
    steps: str
    states: str
    groups: str
    due: str
    active: str
    values: str
    errors: str
    ended: str

    @classmethod
    def of(cls, id: str) -> "WorkflowKeys":
        """Return the keys of a workflow. No queue has them: the name of a queue never holds a colon in a key."""
        base = f"{conf.section(KitSettings).PREFIX}:{{queues:workflow:{id}}}:"
        return cls(*(base + part for part in cls._fields))


class WorkflowLists(NamedTuple):
    """The lists of all workflows, in the slot of the names of queues."""

    listed: str
    checked: str

    @classmethod
    def of(cls) -> "WorkflowLists":
        """Return their keys."""
        base = f"{conf.section(KitSettings).PREFIX}:{{queues}}:workflows:"
        return cls(*(base + part for part in cls._fields))
