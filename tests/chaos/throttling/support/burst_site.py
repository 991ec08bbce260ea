"""A site of one guarded view, for bursts.py: its settings, its views, and how it is served."""

import os
import sys

from django.http import HttpResponse, JsonResponse
from django.urls import path

import redis_kit.core.client.pools
from redis_kit.core import connections
from redis_kit.core.errors import RedisUnavailable
from redis_kit.throttling import throttle

LIMIT = 10

SECRET_KEY = "only-for-tests-and-as-long-as-a-real-one-is"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = __name__
INSTALLED_APPS = ["redis_kit"]
MIDDLEWARE = []
REDIS_KIT = {
    "CONNECTIONS": {"default": {"URL": os.environ.get("BURST_URL", "")}},
    "MAX_CONNECTIONS": int(os.environ.get("BURST_CONNECTIONS", "50")),
    "CONNECT_TIMEOUT": float(os.environ.get("BURST_TIMEOUT", "0.25")),
    "READ_TIMEOUT": float(os.environ.get("BURST_TIMEOUT", "0.25")),
    "POOL_TIMEOUT": 8 * float(os.environ.get("BURST_TIMEOUT", "0.25")),
    "THROTTLING": {"REMEMBER": 0},  # so that every request asks the server
}

if os.environ.get("BURST_PLANT"):  # the old fault: a full pool refuses at once, and that is an outage

    class Impatient(redis_kit.core.client.pools.Server):
        def __init__(self, where, factory, most, wait, *more):
            super().__init__(where, factory, most, 0, *more)

    connections.Server = Impatient
    redis_kit.core.client.pools._Shared._exhausted = lambda self, **_: RedisUnavailable("all connections are in use")


@throttle(f"{LIMIT}/h", key="ip")
def view(request):
    """Answer at once."""
    return HttpResponse("ok")


@throttle(f"{LIMIT}/h", key="ip")
async def async_view(request):
    """See view()."""
    return HttpResponse("ok")


def state(request):
    """Tell how the circuit breaker stands."""
    found = connections._breakers.values()
    return JsonResponse(
        {"open": any(one.is_open for one in found), "failures": sum(len(one.failures) for one in found)}
    )


urlpatterns = [path("view/", view), path("async/", async_view), path("state/", state)]


def serve_threads(port):
    """Serve with a thread for each request, as runserver does."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Server(ThreadedWSGIServer):
        request_queue_size = 1024

    class Handler(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", port), Handler)
    server.set_app(get_wsgi_application())
    server.serve_forever()


def serve_loop(port):
    """Serve with uvicorn."""
    import uvicorn
    from django.core.asgi import get_asgi_application

    uvicorn.run(get_asgi_application(), host="127.0.0.1", port=port, log_level="warning", lifespan="off", backlog=1024)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.throttling.support.burst_site"
    {"wsgi": serve_threads, "asgi": serve_loop}[sys.argv[1]](int(sys.argv[2]))
