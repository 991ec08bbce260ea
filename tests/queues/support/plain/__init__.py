"""An app of a project that knows nothing of the kit, for workers that tests start."""
