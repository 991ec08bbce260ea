"""walrus's autocomplete: bytes for an entry of twelve characters. It runs in an environment of its own."""

import json
import random
import sys

from walrus import Walrus

url, count = sys.argv[1], int(sys.argv[2])
database = Walrus.from_url(url)
database.execute_command("FLUSHALL", "SYNC")
before = database.info("memory")["used_memory"]
index = database.autocomplete("walrus")
for id in range(count):
    rng = random.Random(id)
    first, last = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size)).title() for size in (4, 7))
    index.store(id, f"{first} {last}")
json.dump((database.info("memory")["used_memory"] - before) / count, sys.stdout)
