"""Other processes: excluded while they live, and no obstacle when they are dead."""

from pathlib import Path
from time import monotonic

from redis_kit.locks import Lock, Semaphore

COUNT = """
from pathlib import Path
file = Path(sys.argv[3])
for _ in range(20):
    with Lock("counter"):
        number = int(file.read_text())
        os.sched_yield()
        file.write_text(str(number + 1))
"""
HOLD = """
import signal
with Lock("a", timeout=1), Semaphore("a", 1, timeout=1):
    print(time.monotonic(), flush=True)
    signal.pause()
"""
FORK = """
lock = Lock("a")
lease = lock.acquire()
child = os.fork()
if child == 0:
    def refused(call):
        try:
            call()
        except NotHeld:
            return True
    answers = [lease.held, lock.owned(), bool(Lock("a").acquire(blocking=False))]
    answers += [not refused(call) for call in (lease.release, lease.extend, lock.release, lock.reacquire)]
    os._exit(any(answers))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lease.held, lock.owned())
lock.release()
print(lock.locked())
"""


def test_processes_exclude_each_other(kit, program, tmp_path: Path):
    file = tmp_path / "counter"
    file.write_text("0")
    processes = [program(COUNT, file) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert file.read_text() == "60"


def test_killed_holder_is_no_obstacle_after_its_lease(kit, program):
    holder = program(HOLD)
    taken = float(holder.stdout.readline())
    holder.kill()
    assert Lock("a").acquire(blocking=False) is None
    assert Semaphore("a", 1).acquire(blocking=False) is None
    with Lock("a"), Semaphore("a", 1):
        assert 0.9 < monotonic() - taken < 10  # the lease lasts 1 s, and the default is 30


def test_forked_child_has_no_lease(kit, program):
    process = program(FORK)
    output, _ = process.communicate(timeout=30)
    assert output.split() == ["0", "True", "True", "False"]
