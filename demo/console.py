"""Output of the demo."""

from typing import TextIO


def say(text: str, *, file: TextIO | None = None) -> None:
    """Print and flush, so that a pipe gets it at once."""
    print(text, file=file, flush=True)
