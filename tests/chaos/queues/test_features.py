"""Queues work, and tests of the engine and of all other features pass, without the folder of a feature and its line.

    python -m pytest tests/chaos/queues/test_features.py -k schedules

Each case of these tests takes as long as they do, a few minutes. It runs when named.
"""

import faulthandler
import subprocess
import sys
from pathlib import Path

import pytest

from tests.queues.support import smoke, without

pytestmark = [pytest.mark.once, pytest.mark.timeout(3600)]
OPTIONS = ["-q", "-n", "0", "-x", "--no-header", "-p", "no:cacheprovider"]


@pytest.mark.parametrize(
    "missing",
    [*([name] for name in without.NAMES), without.NAMES],
    ids=lambda names: names[-1] if len(names) == 1 else "all",
)
def test_tests_of_the_others_pass_without_a_feature(tmp_path, missing):
    faulthandler.cancel_dump_traceback_later()  # "faulthandler_timeout" is for one test, and holds for each of the copy
    without.copied(tmp_path, missing)
    folders = ["tests/queues/engine"]
    folders += [f"tests/queues/features/{name}" for name in without.NAMES if name not in missing]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *folders]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


def test_queues_work_without_any_one_feature_and_without_all(kit, tmp_path):
    cases = {name: [name] for name in without.NAMES} | {"all": without.NAMES}
    for name, missing in cases.items():
        without.linked(tmp_path / name, missing)
    roots = [str(tmp_path / name) for name in cases]
    done = subprocess.run([sys.executable, smoke.__file__, kit.url, *roots], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path(smoke.__file__).exists()
