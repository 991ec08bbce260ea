"""pottery's Bloom filter: microseconds for each value of ``contains_many()``. It runs in an environment of its own."""

import json
import sys
import time

import redis
from pottery import BloomFilter

url, batch, rounds, capacity = sys.argv[1], *map(int, sys.argv[2:])
client = redis.Redis.from_url(url)
seen = BloomFilter(num_elements=capacity, false_positives=0.01, redis=client, key="pottery")
for start in range(0, 5 * batch, batch):
    seen.update(range(start, start + batch))
client.config_resetstat()
times = []
for first in (*range(0, rounds * batch, 2 * batch), *range(10**9, 10**9 + rounds * batch, 2 * batch)):
    began = time.perf_counter()
    list(seen.contains_many(*range(first, first + batch)))
    times.append(1e6 * (time.perf_counter() - began) / batch)
json.dump(sorted(times)[len(times) // 2], sys.stdout)
