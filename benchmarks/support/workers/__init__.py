"""Measurements of workers as whole processes."""
