"""The settings of autocomplete."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Problem, Section, is_function


@dataclass(frozen=True)
class AutocompleteSettings(Section):
    """The options of ``REDIS_KIT["AUTOCOMPLETE"]``."""

    name = "AUTOCOMPLETE"
    ranges = {"HALF_LIFE": (604_800, 315_360_000)}
    policies = {"open": "nothing is found, and pages of models ask the database"}

    #: The connection of indexes and lists that name none.
    USING: str = "default"
    #: Seconds after which a use of an entry counts half, 7 days to 10 years.
    HALF_LIFE: float = 2_592_000.0
    #: The dotted path of a function that returns a list of further spellings of a text.
    SPELLINGS: str = ""
    #: What searches do while Redis is unavailable: ``open`` finds nothing, or they raise. Methods that write raise.
    ON_FAILURE: Literal["open", "raise"] = "open"

    def problems(self) -> Iterator[Problem]:
        """See Section.problems()."""
        if self.SPELLINGS and not is_function(self.SPELLINGS):
            wrong = f"REDIS_KIT['AUTOCOMPLETE']['SPELLINGS'] is {self.SPELLINGS!r}, but no function has that path."
            yield Problem("E002", wrong, "Name a function that takes a text and returns a list of texts.")
