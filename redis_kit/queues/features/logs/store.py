"""The log of each job: the script that adds lines, and the command that reads the latest."""

from collections.abc import Sequence

from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Call
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.keys import of_one

STORE_LOG = QueueScript("store_log", __package__)


def store_log(base: str, id: str, lines: Sequence[bytes], most: int, ttl_ms: int) -> ScriptCall:
    """Return the step that adds lines to the log of a job, which keeps ``most``."""
    return STORE_LOG(base, most, ttl_ms, *lines, job=id)


def read_log(base: str, id: str, limit: int) -> Call:
    """Return the step that reads the latest lines, the oldest first."""
    return Call("LRANGE", of_one(base, "log", id), -limit, -1)
