"""An app with tasks, for workers that tests start."""
