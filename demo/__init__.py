"""Drives and checks the example site: ``manage.py rk_demo``."""
