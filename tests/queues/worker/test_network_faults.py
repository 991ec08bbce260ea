"""A worker whose way to the server breaks: it comes back by itself, and no job is lost or done twice."""

import time

import pytest

from redis_kit.queues import Queue, QueueCounts
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.traffic import Traffic

pytestmark = [pytest.mark.alone, pytest.mark.once]

# Whether all stands still meanwhile, and how soon it goes on: after a pause of 2 s at most, and a read before it of 2 s
# (4 s where it waits for work) that ends in vain; twice as long on a busy machine.
SILENT, ABRUPT, SLOW = (True, 12.0), (True, 6.0), (False, 12.0)
FAULTS = {
    "refuse": ABRUPT,
    "rst": ABRUPT,
    "drop_replies": SILENT,
    "cut_reply": SILENT,
    "blackhole": SILENT,
    "drip": SLOW,
    "delay": SLOW,
}
SECONDS = {"drip": 0.0005, "delay": 0.2}


def test_every_fault_of_the_way_is_outlasted(kit, proxy, journal, start_worker):
    kit.connect(proxy.connection, QUEUES=LASTING)
    worker = start_worker("--threads", 2)
    queue = Queue("default")
    with Traffic(journal) as traffic:
        traffic.back()
        for mode, (stands, within) in FAULTS.items():
            with proxy.fault(mode, seconds=SECONDS.get(mode, 0)):
                if mode == "refuse":
                    proxy.kill_all()
                if stands:
                    assert traffic.stands(), mode
                else:
                    time.sleep(0.7)  # whether anything gets through meanwhile, the machine's load decides
            print(f"{mode}: {traffic.back(within=within):.2f} s")
        assert worker.poll() is None
        traffic.settle()
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 0))
    assert worker.poll() is None
    assert traffic.errors
