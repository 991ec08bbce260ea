"""What competing processes did with locks, written down as it happened, and what must never be found in it."""
