"""A copy of the package in which the folders of features are missing, and their lines in the list."""

import re
import shutil
from collections.abc import Collection
from pathlib import Path

import redis_kit

PACKAGE = Path(redis_kit.__file__).parent
FEATURES = PACKAGE / "queues" / "features"
NAMES = sorted(path.parent.name for path in FEATURES.glob("*/__init__.py"))


# Tests of one feature that need others, too: they go with each of these.
TOGETHER = {
    "celery/test_fleet.py": ("handover", "logs", "unique", "limits", "shards"),
    "celery/test_project.py": ("handover", "once", "results", "resumable", "schedules", "traces", "unique"),
    "celery/test_sink.py": ("handover",),
    "celery/test_delay.py": ("handover", "unique"),
    "celery/test_schedules.py": ("schedules", "handover"),
    "celery/test_traces.py": ("workflows", "traces", "handover"),
    "schedules/test_celery_beat.py": ("celery",),
    "handover/test_page.py": ("celery",),
    "handover/test_limits.py": ("cancel", "unique", "limits"),
    "limits/test_lanes.py": ("unique",),
    "limits/test_lanes_model.py": ("unique", "cancel"),
    "workflows/test_options.py": ("unique", "limits"),
    "test_list.py": tuple(NAMES),
}


def linked(root: Path, missing: Collection[str]) -> None:
    """Make a copy below ``root``. Folders that are whole are links, so it takes a millisecond."""
    _link(PACKAGE, root / "redis_kit", missing)


def copied(root: Path, missing: Collection[str]) -> None:
    """Make a copy with the tests, whose folders of these features are missing, too."""
    ignored = shutil.ignore_patterns("__pycache__")
    repository = PACKAGE.parent
    for name in ("redis_kit", "tests", "example_project", "demo", "benchmarks", "docs"):
        shutil.copytree(repository / name, root / name, ignore=ignored)
    for name in ("pyproject.toml", "manage.py"):
        shutil.copy(repository / name, root)
    for name in missing:
        shutil.rmtree(root / "redis_kit" / "queues" / "features" / name)
        shutil.rmtree(root / "tests" / "queues" / "features" / name, ignore_errors=True)
    for test, needed in TOGETHER.items():
        if not set(needed).isdisjoint(missing):
            (root / "tests" / "queues" / "features" / test).unlink(missing_ok=True)
    path = root / "tests" / "settings.py"
    path.write_text(path.read_text().replace('    "tests.docs.shop",\n', ""))  # it uses all features
    path = root / "redis_kit" / "queues" / "features" / "__init__.py"
    path.write_text(without_lines(path.read_text(), missing))


def without_lines(text: str, missing: Collection[str]) -> str:
    """Return the list of features without the lines of some."""
    for name in missing:
        text, count = re.subn(rf'    "redis_kit\.queues\.features\.{name}\.[^\n]*\n', "", text)
        assert count == (FEATURES / name / "feature.py").exists(), name
    return text


def _link(source: Path, target: Path, missing: Collection[str]) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir():
        if source == FEATURES and (path.name in missing or path.name == "__pycache__"):
            continue
        if path == FEATURES / "__init__.py":
            (target / path.name).write_text(without_lines(path.read_text(), missing))
        elif path in (FEATURES, FEATURES.parent):
            _link(path, target / path.name, missing)
        elif path.name != "__pycache__" or source not in (FEATURES.parent, FEATURES):
            (target / path.name).symlink_to(path)
