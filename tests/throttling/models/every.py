"""Every model by the name of its strategy."""

from tests.throttling.models.bucket import Bucket
from tests.throttling.models.log import Log
from tests.throttling.models.windows import FixedWindow, SlidingCounter

MODELS = {
    "gcra": Bucket,
    "token_bucket": Bucket,
    "fixed_window": FixedWindow,
    "sliding_counter": SlidingCounter,
    "sliding_log": Log,
}
