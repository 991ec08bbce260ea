"""Measure how long operations take on a server."""

from redis_kit.operations.commands.rk_bench import Command

__all__ = ["Command"]
