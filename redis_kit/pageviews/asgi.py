"""An ASGI application that counts the waiting views when its server shuts down."""

from redis_kit.core.web.lifespan import FlushAtShutdown

__all__ = ["FlushAtShutdown"]
