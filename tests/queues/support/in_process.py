"""A worker in threads of the test's own process: no supervisor is there to beat for it."""

import contextlib
import threading

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.shared.worker_queue import send_heartbeats


@contextlib.contextmanager
def working(launcher: WorkerProcess):
    """Let it work meanwhile, and beat for it."""
    over = threading.Event()
    threads = [threading.Thread(target=launcher.run), threading.Thread(target=_beat, args=(launcher, over))]
    for thread in threads:
        thread.start()
    try:
        yield launcher
    finally:
        over.set()
        threads[1].join(10)
        launcher.stop()
        threads[0].join(10)
    threads += [thread for thread in threading.enumerate() if thread.name.startswith("redis-kit-listener")]
    for thread in threads:
        thread.join(10)  # a client that is still blocked would be there for the next test
    assert not any(thread.is_alive() for thread in threads)


def _beat(launcher: WorkerProcess, over: threading.Event) -> None:
    noted = False
    while not over.is_set():
        for source in launcher.sources:
            with contextlib.suppress(RedisFailure):
                send_heartbeats([source])
                if not noted:
                    source.note()
        noted = True
        over.wait(conf.section(QueueSettings).HEARTBEAT_INTERVAL)
