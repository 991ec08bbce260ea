"""The funnels of bench_cohorts by bitmapist, on data that is stored already. Prints milliseconds and counts as JSON."""

import json
import sys
import time
from datetime import datetime, timedelta
from statistics import median
from urllib.parse import urlsplit

import bitmapist


def grid(day, first):
    """Return milliseconds and the number of cells of a retention grid of 90 days, by one operation for each cell."""
    days, cells, began = [first + timedelta(days=at) for at in range(90)], 0, time.perf_counter()
    for at, cohort in enumerate(days):
        for later in days[at:]:
            cells += len(bitmapist.BitOpAnd(day("new", cohort), day("active", later))) >= 0
    return (time.perf_counter() - began) * 1000, cells


def main(url, first, rounds):
    where = urlsplit(url)
    bitmapist.setup_redis("default", where.hostname, where.port)
    first = datetime.fromisoformat(first)
    one, two, three = (first + timedelta(days=at) for at in (30, 31, 37))

    def day(name, when):
        return bitmapist.DayEvents(name, when.year, when.month, when.day)

    questions = {
        "new, and back on the next day": lambda: bitmapist.BitOpAnd(day("new", one), day("active", two)),
        "here on two days": lambda: bitmapist.BitOpAnd(day("active", one), day("active", two)),
        "here on one of two days": lambda: bitmapist.BitOpOr(day("active", one), day("active", two)),
        "new, and not back after a week": lambda: bitmapist.BitOpAnd(
            day("new", one), bitmapist.BitOpNot(day("active", three))
        ),
    }
    results = {"retention of 90 cohorts": grid(day, first)}
    for name, ask in questions.items():
        times = []
        for _ in range(rounds):
            bitmapist.delete_temporary_bitop_keys()  # answers are kept for a minute
            began = time.perf_counter()
            count = len(ask())
            times.append(time.perf_counter() - began)
        results[name] = (median(times) * 1000, count)
    print(json.dumps(results))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
