"""The step that cancels a job."""

from redis_kit.core import conf
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.errors import Cancelled
from redis_kit.queues.settings import QueueSettings

CANCEL = QueueScript("cancel", __package__)


def cancel(
    base: str, id: str, *, error: str = "The job was cancelled while it waited.", ttl_ms: int | None = None
) -> ScriptCall:
    """Return the step that cancels a job; the error is stored as the result of a waiting job for ``ttl_ms``."""
    if ttl_ms is None:
        ttl_ms = int(conf.section(QueueSettings).FAILED_RESULT_TTL * 1000)
    return CANCEL(base, id, payload.encoded_error(Cancelled(error)), ttl_ms, job=id)
