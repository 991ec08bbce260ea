"""What has to work without a feature: all other modules are imported, a queue and a task do their work.

    python tests/queues/support/smoke.py URL ROOT...

Each ROOT has a copy of the package, see without.py, and gets a process of its own. These are forked by one that has
imported Django, the client and Celery, which is most of the start. URL is that of a server.
"""

import importlib
import os
import pkgutil
import sys
import traceback
from pathlib import Path

import celery.app  # noqa: F401
import cronsim  # noqa: F401
import django.core.checks
import django.core.management
import django.db.backends.sqlite3.base
import prometheus_client  # noqa: F401
import redis.asyncio  # noqa: F401
from django.conf import settings

APPS = ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "redis_kit"]


def modules(package: str) -> list[str]:
    """Return the modules of a package, which it imports."""
    found = importlib.import_module(package)
    names = [package]
    for module in pkgutil.iter_modules(found.__path__):
        name = f"{package}.{module.name}"
        names += modules(name) if module.ispkg else [name]
    return names


def check(url: str, root: str) -> None:
    """Import all of the copy, and run a job of a queue and one of a task."""
    sys.path[:0] = [root, str(Path.cwd())]
    settings.configure(
        INSTALLED_APPS=APPS,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        REDIS_KIT={"CONNECTIONS": {"default": {"URL": url, "TEST": True}}},
        USE_TZ=True,
    )
    django.setup()
    from redis_kit import queues
    from redis_kit.core.component import components

    assert str(queues.__file__).startswith(root), queues.__file__
    for name in modules("redis_kit.queues"):
        importlib.import_module(name)
    from redis_kit.queues.component import Queues

    (component,) = [each for each in components() if isinstance(each, Queues)]
    assert not list(component.checks())
    assert component.load_panels()
    assert component.load_metrics()
    from redis_kit.testing.jobs import drain
    from tests.queues.support import tasks

    name = f"smoke-{os.getpid()}"
    queue = queues.Queue(name)
    queue.put("job")
    (job,) = queue.claim(worker="w")
    queue.nack(job)
    (job,) = queue.claim(worker="w")
    queue.ack(job)
    tasks.remember.using(queue_name=name).enqueue(5)
    assert drain(name) == 1
    assert tasks.done == [5]
    assert not any(queue.counts())
    assert queue.sign_off(worker="w") == 0


def main(url: str, *roots: str) -> int:
    """Fork a process for each copy. Return how many failed."""
    failed = 0
    for root in roots:
        pid = os.fork()
        if not pid:
            try:
                check(url, root)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print(f"failed: {root}", file=sys.stderr)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
