"""Keys of queues: each that a script names is among them."""

import re
from pathlib import Path

from redis_kit import queues
from redis_kit.core import scripts
from redis_kit.queues import Queue, keys

PARTS = frozenset(("lanes", "rules", "unique", "marks", "later", "lane", "used", "batch"))
FOLDERS = [path for path in Path(queues.__file__).parent.glob("**/scripts") if path.parent.name != "workflows"]
SCRIPTS = sorted(path for folder in FOLDERS for path in folder.glob("[!_]*.lua"))
OF_SCHEDULES = {"names", "due", "code", "stored", "state", "versions", "watchers", "ticks"}


def package_of(path):
    """Return the package of a script."""
    return f"redis_kit.queues.{'.'.join(path.relative_to(Path(queues.__file__).parent).parent.parent.parts)}"


def test_scripts_name_no_other_keys():
    allowed = {*keys.QueueKeys._fields, *keys.OF_ONE, *keys.OF_WORKER, *OF_SCHEDULES} - {"done"}
    sources = [scripts.load(package_of(path), path.stem, PARTS).source for path in SCRIPTS]
    named = {name for source in sources for name in re.findall(r"^-- KEYS\[\d+\] +(\w+)", source, re.MULTILINE)}
    assert named == allowed


def test_keys_begin_with_that_of_their_queue(kit):
    queue = Queue("mail")
    assert keys.QueueKeys.of(queue.key("")).ready == queue.key("ready")
    assert keys.of_one(queue.key(""), "result", "x") == queue.key("result:x")
