"""Who holds something: how it is said, stored and read."""

import asyncio
import os
import socket
import threading
from multiprocessing import get_context
from time import perf_counter

import pytest
from django.core.checks import run_checks

from redis_kit.core import activity
from redis_kit.locks import Lock, Semaphore, locked
from redis_kit.locks.inspection import held_locks
from redis_kit.locks.leases.holder import Holder, StoredLease, describe_caller, location, parse_lock, parse_slot

HERE = "tests/locks/leases/test_holder.py"


def line():
    """Return the line of the caller."""
    return int(location(2).rpartition(":")[2])


def answer():
    return "request 7f3a"


def failing_answer():
    raise RuntimeError("no request")


def test_caller_is_described_and_read_again(kit):
    holder = Holder.parse(describe_caller()); here = line()  # fmt: skip  # noqa: E702
    assert holder == Holder(socket.gethostname(), os.getpid(), "MainThread", f"{HERE}:{here}", "")
    assert holder.process_text == f"{socket.gethostname()}, pid {os.getpid()}, MainThread"
    assert holder.text == f"{holder.process_text}, at {HERE}:{here}"


def test_task_and_thread_are_named(kit):
    async def main():
        return Holder.parse(await asyncio.create_task(told(), name="import\tof\norders"))

    async def told():
        return describe_caller()

    assert asyncio.run(main()).thread == "import of orders"
    found = []
    thread = threading.Thread(target=lambda: found.append(Holder.parse(describe_caller())), name="x" * 100)
    thread.start()
    thread.join()
    assert found[0].thread == "x" * 80
    assert found[0].location.startswith(HERE)


def test_forked_child_says_its_own_number(kit):
    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sending.send(describe_caller()))
    child.start()
    assert Holder.parse(receiving.recv()).pid == child.pid
    child.join(10)


def test_place_is_that_of_the_site_s_code(kit):
    with Lock("a"):
        here = line() - 1
        (found,) = held_locks().locks
    assert found.location == f"{HERE}:{here}"

    async def main():
        async with asyncio.timeout(5), Lock("a"):
            return line() - 1, held_locks().locks[0].location

    here, found_at = asyncio.run(main())
    assert found_at == f"{HERE}:{here}"


def test_place_of_a_locked_function_is_the_function(kit):
    @locked("a")
    def build():
        return held_locks().locks[0].location

    @locked("b")
    async def abuild():
        return held_locks().locks[0].location

    assert build() == f"{HERE}:{build.__wrapped__.__code__.co_firstlineno}"
    assert asyncio.run(abuild()) == f"{HERE}:{abuild.__wrapped__.__code__.co_firstlineno}"


def test_code_of_the_kit_and_of_python_is_passed_over(kit):
    scope = {"location": location}
    for file in (threading.__file__, asyncio.base_events.__file__, Lock.__init__.__code__.co_filename, "<frozen os>"):
        exec(compile("def call(function):\n    return function(1)", file, "exec"), scope)  # noqa: S102
        found = scope["call"](lambda above: location(above + 1))
        assert found.startswith(HERE), file
    exec(compile("def call():\n    return location()", "/somewhere/" + "long/" * 40 + "end.py", "exec"), scope)  # noqa: S102
    assert scope["call"]().endswith("long/end.py:2")
    assert len(scope["call"]()) <= 123


def test_work_is_what_a_worker_says_else_what_the_site_answers(kit):
    kit.options(LOCKS={"HOLDER": f"{__name__}.answer"})
    assert Holder.parse(describe_caller()).doing == "request 7f3a"
    with activity.doing("job shop.tasks.send\t12"):
        assert Holder.parse(describe_caller()).doing == "job shop.tasks.send 12"
    kit.options(LOCKS={})
    with activity.doing("\x1b" * 300):
        assert Holder.parse(describe_caller()).doing == " " * 200


def test_answer_that_fails_costs_no_lock(kit, caplog):
    kit.options(LOCKS={"HOLDER": f"{__name__}.failing_answer"})
    with Lock("a"):
        assert held_locks().locks[0].doing == ""
    assert "HOLDER" in caplog.text


@pytest.mark.parametrize("path", ["nowhere.function", f"{__name__}.HERE", "x"])
def test_holder_that_is_no_function_is_found_by_the_checks(kit, path):
    kit.options(LOCKS={"HOLDER": path})
    assert "redis_kit.E013" in [message.id for message in run_checks()]
    kit.options(LOCKS={"HOLDER": f"{__name__}.answer"})
    assert "redis_kit.E013" not in [message.id for message in run_checks()]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (b"", Holder()),
        (b"host", Holder("host")),
        (b"host\tx\ty", Holder("host", 0, "y")),
        (b"h\t12\tt\tshop/views.py:1\ta\tb", Holder("h", 12, "t", "shop/views.py:1", "a\tb")),
        ("h\t\u0661\tt".encode(), Holder("h", 0, "t")),
        (b"\xff\t1\t", Holder("\ufffd", 1, "?")),
    ],
)
def test_anything_can_be_read(stored, expected):
    assert Holder.parse(stored) == expected


def test_stored_leases_are_read():
    holder = Holder("h", 1, "t", "p:2", "w")
    stored = b"tok h\t1\tt\tp:2\tw\n12 000034 30000"
    for waited_for in (b"", b"+"):
        assert parse_lock(stored + waited_for) == ("tok", StoredLease(12_000_034, 30000, 1, holder))
    slot = StoredLease(12_000_034, 30000, 3, holder, (5, 3))
    assert parse_slot(b"12 000034 5,3 3 30000 h\t1\tt\tp:2\tw") == slot
    assert [parse_lock(one) for one in (None, b"", b"~tok", b"junk", b"a b\nc d e")] == [None] * 5
    assert {parse_slot(one) for one in (None, b"", b"junk", b"a b c d e")} == {StoredLease(0, 0, 1, Holder())}


def test_semaphore_tells_of_each_holder(kit):
    with Semaphore("s", 2):
        here = line() - 1
        (semaphore,) = held_locks().semaphores
    assert [one.location for one in semaphore.holders] == [f"{HERE}:{here}"]


def test_to_say_who_one_is_costs_microseconds(kit):
    describe_caller()
    rounds = []
    for _ in range(20):
        began = perf_counter()
        for _ in range(200):
            describe_caller()
        rounds.append((perf_counter() - began) / 200)
    assert min(rounds) < 0.00001
