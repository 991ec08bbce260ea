"""Text that may come from anybody, as it may be shown."""

MARGIN = "    | "  # of each further line: none of them looks like one that a program wrote by itself


def clean(text: str) -> str:
    """Return text without control characters, which terminals obey: these and line ends are escaped."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def contained(text: str) -> str:
    """Return text whose lines stay lines, behind a margin from the second one on; what terminals obey is escaped."""
    return f"\n{MARGIN}".join(map(clean, text.split("\n")))
