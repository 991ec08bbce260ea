"""The tests of the engine and of all other features pass without the folder of a feature and its line in the list.

    python -m pytest tests/chaos/queues/test_features.py -k schedules

Each case takes as long as these tests do, a few minutes. It runs when named.
"""

import subprocess
import sys

import pytest

from tests.queues.support import without

pytestmark = [pytest.mark.once, pytest.mark.timeout(3600)]
OPTIONS = ["-q", "-n", "0", "-x", "--no-header", "-p", "no:cacheprovider"]


@pytest.mark.parametrize(
    "missing",
    [*([name] for name in without.NAMES), without.NAMES],
    ids=lambda names: names[-1] if len(names) == 1 else "all",
)
def test_tests_of_the_others_pass_without_a_feature(tmp_path, missing):
    without.copied(tmp_path, missing)
    folders = ["tests/queues/engine"]
    folders += [f"tests/queues/features/{name}" for name in without.NAMES if name not in missing]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *folders]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
