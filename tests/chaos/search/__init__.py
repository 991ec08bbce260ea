"""Search under kills, as an app with a model."""
