"""Examine the servers: what is wrong, and what to type."""

from redis_kit.operations.commands.rk_doctor import Command as Command
