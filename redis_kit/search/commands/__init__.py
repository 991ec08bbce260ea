"""The command of search."""
