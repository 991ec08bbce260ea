"""Management commands of autocomplete."""
