"""Keys of queues: each that a script names is among them."""

import re
from pathlib import Path

from redis_kit import queues
from redis_kit.core import scripts
from redis_kit.queues import Queue, keys
from redis_kit.queues.engine.feature import all_parts, script_hooks
from tests.queues.support import feature_keys

PARTS = frozenset(("later", "lane", "used", "once", "unfit", *all_parts()))
FOLDERS = [path for path in Path(queues.__file__).parent.glob("**/scripts") if path.parent.name != "workflows"]
SCRIPTS = sorted(path for folder in FOLDERS for path in folder.glob("[!_]*.lua"))


def package_of(path):
    """Return the package of a script."""
    return f"redis_kit.queues.{'.'.join(path.relative_to(Path(queues.__file__).parent).parent.parent.parts)}"


def test_scripts_name_no_other_keys():
    of_features = feature_keys.names(missing=["workflows"])
    allowed = {*keys.QueueKeys._fields, *keys.OF_ONE, *keys.OF_WORKER, *of_features} - {"done"}
    sources = [scripts.load(package_of(path), path.stem, PARTS, script_hooks(PARTS)).source for path in SCRIPTS]
    named = {name for source in sources for name in re.findall(r"^-- KEYS\[\d+\] +(\w+)", source, re.MULTILINE)}
    assert named == allowed


def test_keys_begin_with_that_of_their_queue(kit):
    queue = Queue("mail")
    assert keys.QueueKeys.of(queue.key("")).ready == queue.key("ready")
    assert keys.of_one(queue.key(""), "result", "x") == queue.key("result:x")
