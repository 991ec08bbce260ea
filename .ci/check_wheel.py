"""Check a wheel that is installed in this environment: its files, and that Django can start with it."""

import sys
import zipfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

wheel, package = Path(sys.argv[1]), Path(sys.argv[2])
packed = set(zipfile.ZipFile(wheel).namelist())
wanted = {
    f"redis_kit/{path.relative_to(package).as_posix()}"
    for path in package.rglob("*")
    if path.is_file() and path.parent.name != "__pycache__"
}
missing = sorted(wanted - packed)
foreign = sorted(name for name in packed - wanted if ".dist-info/" not in name)
assert not missing, f"not in the wheel: {missing}"
assert not foreign, f"in the wheel but not in the checkout: {foreign}"
for kind in (".lua", ".html", ".css", ".js", "py.typed"):
    assert any(name.endswith(kind) for name in packed), f"no {kind} in the wheel"

import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    SECRET_KEY="x" * 50,
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "redis_kit",
    ],
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://localhost:6379/0"}},
)
django.setup()

import redis_kit  # noqa: E402
from redis_kit.components import BUILTIN  # noqa: E402

assert not Path(redis_kit.__file__).is_relative_to(package), "the checkout was imported and not the wheel"
assert redis_kit.__version__ == version("django-redis-kit")
for path in BUILTIN:
    import_module(path.rsplit(".", 2)[0])
print(f"{wheel.name}: {len(packed)} files, Django {django.__version__} starts, {len(BUILTIN)} components import")
