"""Days as a table for spreadsheets."""

FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def formula_safe(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula, by an apostrophe before it."""
    return f"'{text}" if text.startswith(FORMULAS) else text
