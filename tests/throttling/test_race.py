"""Exactness when many processes ask at once."""

import json
import subprocess
import sys
from pathlib import Path

from redis_kit.throttling import Throttle

ROOT = Path(__file__).parents[2]
PROCESSES, HITS = 4, 200
PROGRAM = """
import json, sys
from django.conf import settings
settings.configure(SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is", REDIS_KIT=json.loads(sys.argv[1]))
import django
django.setup()
from redis_kit.throttling import Throttle
limit = Throttle("race", sys.argv[2])
limit.peek("joe")
print("ready", flush=True)
sys.stdin.readline()
print(sum(limit.hit("joe").allowed for _ in range(int(sys.argv[3]))), flush=True)
"""


def test_four_processes_get_exactly_the_limit_among_them(kit):
    rates = "100/d; 1000/w"  # so slow that nothing drains while they race
    kit.options(THROTTLING={"REMEMBER": 0})
    command = [sys.executable, "-c", PROGRAM, json.dumps(kit.settings.REDIS_KIT), rates, str(HITS)]
    racers = [
        subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    admitted = [int(racer.communicate(timeout=30)[0]) for racer in racers]
    assert sum(admitted) == 100
    assert Throttle("race", rates).peek("joe").remaining == 0
