"""A small app for the tests: a user model."""
