"""What every component needs and nothing that only one needs."""
