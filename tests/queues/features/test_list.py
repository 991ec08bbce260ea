"""The list of features: each can be taken away, folder and line."""

import subprocess
import sys
from pathlib import Path

import pytest

from redis_kit.queues.engine import calls
from redis_kit.queues.engine.feature import features, script_parts
from redis_kit.queues.features import FEATURES
from tests.queues.support import smoke, without

pytestmark = pytest.mark.alone(15)


def test_list_has_each_folder_once_and_features_are_named_after_them():
    assert sorted(path.split(".")[3] for path in FEATURES) == without.NAMES
    assert [feature.name for feature in features()] == [path.split(".")[3] for path in FEATURES]


def test_bits_of_features_are_those_that_queues_have_stored():
    assert script_parts() == {1: "lanes", 2: "unique", 4: "marks", 16: "paused", 64: "rules"}
    assert sum(len(feature.bits) for feature in features()) == 5
    assert not script_parts().keys() & calls.PARTS.keys()


def test_queues_work_without_any_one_feature_and_without_all(kit, tmp_path):
    cases = {name: [name] for name in without.NAMES} | {"all": without.NAMES}
    for name, missing in cases.items():
        without.linked(tmp_path / name, missing)
    roots = [str(tmp_path / name) for name in cases]
    done = subprocess.run([sys.executable, smoke.__file__, kit.url, *roots], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path(smoke.__file__).exists()
