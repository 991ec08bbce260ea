"""Titles: how pages and commands show a throttle."""

DEFAULT = "default"  # the connection that titles omit


def title(name: str, using: str) -> str:
    """Return the name of a throttle, with its connection unless that is the default."""
    return name if using == DEFAULT else f"{name} ({using})"
