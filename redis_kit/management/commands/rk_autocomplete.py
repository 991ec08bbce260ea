"""Show indexes for autocomplete, and rebuild those of models."""

from redis_kit.autocomplete.commands.rk_autocomplete import Command as Command
