"""Show search indexes, rebuild them, and write what waits."""

from redis_kit.search.commands.rk_search import Command as Command
