"""walrus: documents a second, and seconds of each query for one of several words. In an environment of its own."""

import json
import sys
import time

from walrus import Database

given = json.load(sys.stdin)
index = Database.from_url(given["url"]).Index("walrus", stemmer=False, min_word_length=1)
began = time.perf_counter()
for id, (title, body) in given["texts"]:
    index.add(str(id), f"{title} {body}")
rate = len(given["texts"]) / (time.perf_counter() - began)
times = []
for words in given["queries"]:
    began = time.perf_counter()
    index.search(" | ".join(words))
    times.append(time.perf_counter() - began)
json.dump({"rate": rate, "times": times}, sys.stdout)
