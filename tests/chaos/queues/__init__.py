"""Workers and servers that are killed while jobs run, and the proof that none is lost. An app, for its tasks."""
