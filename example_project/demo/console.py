"""What the demonstration prints."""

from typing import TextIO


def say(text: str, *, file: TextIO | None = None) -> None:
    """Print at once, also into a pipe."""
    print(text, file=file, flush=True)
