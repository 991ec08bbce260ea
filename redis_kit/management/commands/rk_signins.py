"""Show figures of sign-ins, export them, and store them again from the database."""

from redis_kit.signins.commands.rk_signins import Command as Command
