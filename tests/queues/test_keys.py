"""Keys of queues: each that a script names is among them."""

import re
from pathlib import Path

from redis_kit.core import scripts
from redis_kit.queues import Queue, keys, store

PARTS = frozenset(("lanes", "rules", "unique", "marks", "later", "lane", "used", "batch"))
SCRIPTS = sorted((Path(store.__file__).parent / "scripts").glob("[!_]*.lua"))


def test_scripts_name_no_other_keys():
    allowed = {*keys.QueueKeys._fields, *keys.OF_ONE, *keys.OF_WORKER, *keys.ScheduleKeys._fields} - {"done"}
    sources = [scripts.load("redis_kit.queues.store", path.stem, PARTS).source for path in SCRIPTS]
    named = {name for source in sources for name in re.findall(r"^-- KEYS\[\d+\] +(\w+)", source, re.MULTILINE)}
    assert named == allowed


def test_keys_begin_with_that_of_their_queue(kit):
    queue = Queue("mail")
    assert keys.QueueKeys.of(queue.key("")).ready == queue.key("ready")
    assert keys.of_one(queue.key(""), "result", "x") == queue.key("result:x")
