"""The time that the app adds to the start of a site."""

import statistics
import subprocess
import sys

PROGRAM = """
import sys, time
from django.conf import settings
apps = ["django.contrib.contenttypes", "django.contrib.auth", *sys.argv[1:]]
settings.configure(INSTALLED_APPS=apps, REDIS_KIT={"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1"}}})
import django
began = time.perf_counter()
django.setup()
print(time.perf_counter() - began)
"""
PAIRS = 15


def run() -> None:
    """Print the median over pairs of starts, with the app and without."""
    pairs = [(started("redis_kit"), started()) for _ in range(PAIRS)]
    added = statistics.median(ours - plain for ours, plain in pairs)
    print(f"redis_kit adds {added * 1000:.1f} ms to django.setup() (median of {PAIRS} pairs)\n")


def started(*apps: str) -> float:
    """Return the seconds that django.setup() takes in a new process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *apps], capture_output=True, text=True, check=True)
    return float(done.stdout)
