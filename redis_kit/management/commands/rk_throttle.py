"""List throttles, show what they refuse and to whom, and set rules for a while."""

from redis_kit.throttling.commands.rk_throttle import Command as Command
