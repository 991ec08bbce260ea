"""once(): effects in the database that happen once for a key."""

from redis_kit.queues.engine.feature import Feature


class OnceKeys(Feature):
    """A task uses it by once(): nothing else has to know."""

    name = "once"
