"""The log of a job on its page."""

from collections.abc import Iterator, Sequence

from django.utils.timezone import is_naive, localtime
from django.utils.translation import gettext_lazy as _

from redis_kit.core.logs.masking import without_secrets
from redis_kit.core.panels import Listing
from redis_kit.core.text import contained
from redis_kit.queues.dashboard.job_page import LONGEST
from redis_kit.queues.features.logs.handler import LogLine, loads


def lines(reply: Sequence[bytes]) -> Iterator[Listing]:
    """Yield the log as text, given the stored lines."""
    if logged := [line for line in map(loads, reply) if line]:
        yield Listing(_("Log"), "\n".join(map(_logged, logged))[-LONGEST:])


def _logged(line: LogLine) -> str:
    at = line.at if is_naive(line.at) else localtime(line.at)
    about = f"{at.isoformat(sep=' ', timespec='milliseconds')[:23]} {line.attempt} {line.level} {line.logger}"
    return contained(f"{about}: {without_secrets(line.text)}")
