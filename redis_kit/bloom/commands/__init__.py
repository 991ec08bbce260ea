"""Management commands of Bloom filters."""
