"""The list of features: each can be taken away, folder and line."""

from redis_kit.queues.engine import calls
from redis_kit.queues.engine.feature import features, script_parts
from redis_kit.queues.features import FEATURES
from tests.queues.support import without


def test_list_has_each_feature_once_and_they_are_named_after_folders():
    assert sorted(path.split(".")[3] for path in FEATURES) == [
        name for name in without.NAMES if (without.FEATURES / name / "feature.py").exists()
    ]
    assert [feature.name for feature in features()] == [path.split(".")[3] for path in FEATURES]


def test_bits_of_features_are_those_that_queues_have_stored():
    assert script_parts() == {1: "lanes", 2: "unique", 4: "marks", 16: "paused", 64: "rules"}
    assert sum(len(feature.bits) for feature in features()) == 5
    assert not script_parts().keys() & calls.PARTS.keys()
