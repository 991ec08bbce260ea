"""Show Bloom filters, and rebuild those of models."""

from redis_kit.bloom.commands.rk_bloom import Command as Command
