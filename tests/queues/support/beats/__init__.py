"""An app with one task and the schedules that the environment names."""
