"""Every model by the name of its strategy."""

from tests.throttling.support.models.bucket import Bucket
from tests.throttling.support.models.log import Log
from tests.throttling.support.models.windows import FixedWindow, SlidingCounter

MODELS = {
    "gcra": Bucket,
    "token_bucket": Bucket,
    "fixed_window": FixedWindow,
    "sliding_counter": SlidingCounter,
    "sliding_log": Log,
}
