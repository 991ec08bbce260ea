"""The settings of search."""

from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class SearchSettings(Section):
    """The options of ``REDIS_KIT["SEARCH"]``."""

    name = "SEARCH"
    policies = {"open": "the fallback of each index answers"}

    #: The connection of all indexes.
    USING: str = "default"
    #: The dotted path of a task that passes the name of an index to ``redis_kit.search.refresh()``. It is enqueued
    #: after a commit that concerns the index. Without one, a thread of the process writes the changes.
    TASK: str = ""
    #: What ``search()`` does while Redis is unavailable: ``open`` answers by the ``fallback()`` of the class.
    ON_FAILURE: Literal["open", "raise"] = "open"
