"""List the keys of this project, by component or by a text in their names."""

from redis_kit.operations.commands.rk_keys import Command as Command
