"""The link of traces: a process that traces nothing does not have it."""

import pytest

from redis_kit.queues.engine import message
from redis_kit.queues.features.traces.middleware import Tracing
from redis_kit.queues.tasks.enqueue import body_of
from redis_kit.queues.worker.run.attempt import WorkerContext
from redis_kit.queues.worker.run.runner import Chains
from redis_kit.queues.worker.shared.status_board import StatusBoard
from tests.queues.support.tasks import remember


@pytest.mark.parametrize("tracing", [False, True])
def test_process_has_the_link_if_it_traces(kit, tracing):
    kit.options(TRACING=tracing)
    links = Chains(WorkerContext([], StatusBoard(1))).links
    assert (links[-1] is Tracing) is tracing


def test_call_has_no_context_without_traces(kit):
    assert message.loads(body_of(remember, (1,), {})).trace == {}
