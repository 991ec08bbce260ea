"""A queue of a supervisor: a signal to stop ends its calls to the server, and nothing else."""

import os
import signal
from time import sleep

import pytest

from redis_kit.core.awaitables import LocalCall
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.steps import Call
from redis_kit.queues.worker.supervisor.child import SupervisedQueue
from redis_kit.queues.worker.supervisor.os_signals import Interrupted, Signals


def test_signal_to_stop_cuts_no_receiver_and_ends_the_next_call(kit):
    done = []

    async def never():
        raise AssertionError

    def receive():
        done.append("begun")
        os.kill(os.getpid(), signal.SIGTERM)
        sleep(0.05)
        done.append("ended")

    def steps(queue):
        done.append((yield Call("PING")))
        yield LocalCall(receive, never)
        try:
            yield Call("PING")
        except Interrupted:
            done.append("interrupted")
            raise

    with Signals(lambda: None) as signals:
        queue = SupervisedQueue("mail", worker="w", about="", call=signals.call)
        with pytest.raises(Interrupted):
            queue.run_flow(steps(queue))
    assert done == [b"PONG", "begun", "ended", "interrupted"]


def test_errors_of_calls_reach_the_flow(kit):
    def steps():
        try:
            yield Call("NOSUCHCOMMAND")
        except Exception as error:
            return type(error).__name__, (yield Call("PING"))

    queue = SupervisedQueue("mail", worker="w", about="")
    assert queue.run_flow(steps()) == ("CommandFailed", b"PONG")
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    with pytest.raises(RedisUnavailable):
        queue.run_flow(iter_of(Call("PING")))


def iter_of(step):
    return (yield step)
