"""List what locks and semaphores are held, and release one by force."""

from redis_kit.locks.commands.rk_locks import Command as Command
