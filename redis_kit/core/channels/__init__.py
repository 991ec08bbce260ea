"""Waiting for what is published on channels: thousands of callers on few connections."""
