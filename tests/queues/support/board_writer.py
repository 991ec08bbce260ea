"""Kills children that write on a board, and checks what is left; run by test_board in a process without threads.

A child begins and ends jobs whose parts agree with each other, and notes them; every 10 it turns, every 20 it forgets.
"""

import os
import random
import signal
import sys
import time

from redis_kit.queues.engine.done import Ack
from redis_kit.queues.worker.shared.status_board import StatusBoard


def work(board):
    number = 0
    while True:
        number += 1
        board.begin(0, number % 7, f"token{number}" + "x" * (number % 50), f"id{number}", float(number))
        board.note(Ack(number % 7, b"%d" % number, b"x" * (number % 900), b"", number).pack())
        board.end(0, 1)
        if number % 20 == 10:
            board.turn()
        elif number % 20 == 0:
            board.forget()


def check(board):
    for one in board.running():
        number = int(one.deadline)
        assert one == (number % 7, f"token{number}" + "x" * (number % 50), f"id{number}", float(number)), one
    noted = [Ack.unpack(entry) for entry in board.noted()]
    numbers = [one.ttl_ms for one in noted]
    assert not numbers or numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    for one in noted:
        assert one[:4] == (one.ttl_ms % 7, b"%d" % one.ttl_ms, b"x" * (one.ttl_ms % 900), b""), one
    assert not noted or noted[-1].ttl_ms - board.done in (0, 1)
    return bool(board.running())


def main(rounds):
    busy = 0
    for number in range(rounds):
        board = StatusBoard(1)
        pid = os.fork()
        if not pid:
            work(board)
        deadline = time.monotonic() + 10
        while not board.done and time.monotonic() < deadline:
            time.sleep(0.0001)
        until = time.monotonic() + random.Random(number).uniform(0, 0.01)
        while time.monotonic() < until:
            board.running()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        busy += check(board)
        board.close()
    print(busy)


if __name__ == "__main__":
    main(int(sys.argv[1]))
