"""An ASGI application that counts the waiting views when its server shuts down."""

from collections.abc import Awaitable, Callable
from typing import Any

from redis_kit.pageviews.buffer import buffer

Message = Any  # servers, Starlette and django-stubs have different types: MutableMapping, Mapping, TypedDicts
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class FlushAtShutdown:
    """Wrap Django's ``get_asgi_application()``, which has no lifespan, and count the waiting views at shutdown.

    Servers that end by a signal, such as uvicorn, do not run Python's exit functions. They announce the shutdown by
    the lifespan protocol.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer the lifespan protocol, and pass everything else on."""
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        await receive()  # lifespan.startup
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
        await buffer.aclose()
        await send({"type": "lifespan.shutdown.complete"})
