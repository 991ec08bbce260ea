"""The way of a plain job, from enqueue() to its recorded end: how many files and functions of the kit it passes."""

import ast
import sys
import threading
from collections import defaultdict
from pathlib import Path

import redis_kit
from redis_kit.core.primitive import Primitive
from redis_kit.queues import Queue, task
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.run import runner
from tests.fixtures.process import wait_for
from tests.queues.support import in_process

ROOT = f"{Path(redis_kit.__file__).parent}/"
FILES, FUNCTIONS = 30, 132  # eight files and 26 functions of these are the client's, in core
OF_QUEUES = 22  # files
ANCESTORS, IMPORTS = 3, 15


@task(store_result=False)
def plain(number):
    """Do nothing."""


def test_plain_job_passes_few_files_and_functions(kit):
    queue, passed, on = Queue("default"), defaultdict(set), threading.Event()

    def note(frame, event, argument):
        code = frame.f_code
        if event != "call" or not on.is_set() or not code.co_filename.startswith(ROOT):
            return
        if threading.current_thread().name in ("MainThread", "redis-kit-job-0"):
            passed[code.co_filename.removeprefix(ROOT)].add(code.co_qualname)

    threading.setprofile(note)
    try:
        with in_process.working(WorkerProcess(Options(("default",), threads=1))) as worker:
            for number in range(20):
                plain.enqueue(number)
            wait_for(lambda: not sum(queue.counts()) and worker._fetcher._claimed.free)
            on.set()
            sys.setprofile(note)
            plain.enqueue(20)
            sys.setprofile(None)
            wait_for(lambda: "Fetcher.add_done" in passed["queues/worker/fetcher.py"])
            wait_for(lambda: "RecentAcks.add" in passed["queues/worker/shared/worker_queue.py"])
            wait_for(lambda: worker._fetcher._claimed.free)
            on.clear()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    of_queues = [name for name in passed if name.startswith("queues/")]
    assert len(of_queues) <= OF_QUEUES, sorted(of_queues)
    assert len(passed) <= FILES, sorted(passed)
    assert sum(map(len, passed.values())) <= FUNCTIONS, dict(passed)


def test_runner_imports_few_modules():
    tree = ast.parse(Path(runner.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert len([name for name in modules if name.startswith("redis_kit.")]) <= IMPORTS


def test_no_queue_has_many_ancestors():
    waiting, kinds = [Queue], []
    while waiting:
        kind = waiting.pop()
        kinds.append(kind)
        waiting += kind.__subclasses__()
    for kind in kinds:
        of_kit = [one for one in kind.__mro__[1:] if one.__module__.startswith("redis_kit.")]
        assert len(of_kit) <= ANCESTORS, of_kit
    assert issubclass(Queue, Primitive)
