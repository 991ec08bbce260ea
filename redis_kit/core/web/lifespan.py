"""An ASGI application that sends what waits in this process when its server shuts down."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

_closing: list[Callable[[], object]] = []


def on_shutdown(close: Callable[[], object]) -> None:
    """Call a function when FlushAtShutdown ends, in a thread. It must not raise."""
    _closing.append(close)


class FlushAtShutdown:
    """Wrap Django's ``get_asgi_application()``, which has no lifespan, and send what waits at shutdown.

    Servers that end by a signal, such as uvicorn, do not run Python's exit functions. They announce the shutdown by
    the lifespan protocol.
    """

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self.application = application

    # Servers, Starlette and django-stubs have different types for these.
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer the lifespan protocol, and pass everything else on."""
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        await receive()  # lifespan.startup
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
        for close in _closing:
            await asyncio.to_thread(close)
        await send({"type": "lifespan.shutdown.complete"})
