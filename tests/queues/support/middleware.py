"""Middleware of a project for the tests, which notes what it sees."""

from contextvars import ContextVar
from inspect import iscoroutinefunction

from django.core.exceptions import MiddlewareNotUsed
from django.utils import translation
from django.utils.decorators import sync_and_async_middleware

from redis_kit.queues import GiveUp, task

seen: list[str] = []
tenant: ContextVar[str] = ContextVar("tenant", default="none")


class Tenant:
    """Takes the tenant along, as a class."""

    def __init__(self, call_next):
        self.call_next = call_next

    def __call__(self, attempt):
        token = tenant.set(attempt.headers.get("tenant", "none"))
        seen.append(f"in {attempt.task.name}{attempt.args}")
        try:
            return self.call_next(attempt)
        finally:
            seen.append("out")
            tenant.reset(token)

    def process_enqueue(self, call):
        call.headers["tenant"] = tenant.get()


def doubled(call_next):
    """Change an argument on both ways."""

    def middleware(attempt):
        attempt.args = [value * 2 for value in attempt.args]
        return call_next(attempt)

    def process_enqueue(call):
        call.args = [value + 1 for value in call.args]

    middleware.process_enqueue = process_enqueue
    return middleware


class OnLoop:
    """Runs on the event loop only."""

    sync_capable, async_capable = False, True

    def __init__(self, call_next):
        self.call_next = call_next

    async def __call__(self, attempt):
        seen.append("loop")
        return await self.call_next(attempt)


def unused(call_next):
    raise MiddlewareNotUsed


def nothing(call_next):
    return None


def silent(call_next):
    """Swallow errors."""

    def middleware(attempt):
        try:
            return call_next(attempt)
        except ValueError:
            return "fine"

    return middleware


def forgetful(call_next):
    def middleware(attempt):
        call_next(attempt)

    return middleware


def absent(call_next):
    return lambda attempt: None


def refusing(call_next):
    def middleware(attempt):
        raise GiveUp("not here")

    return middleware


def fewer(call_next):
    def middleware(attempt):
        return call_next(attempt)

    def process_enqueue(call):
        call.args = []

    middleware.process_enqueue = process_enqueue
    return middleware


def eager(call_next):
    """Take enqueue() for an attempt."""

    def middleware(attempt):
        return call_next(attempt)

    middleware.process_enqueue = call_next
    return middleware


class Broken:
    def __init__(self, call_next):
        raise ValueError("no address")


def bare():
    """Take no next middleware."""


class Coroutine:
    """Does not say that it is asynchronous."""

    def __init__(self, call_next):
        self.call_next = call_next

    async def __call__(self, attempt):
        return await self.call_next(attempt)


class Headless(Tenant):
    def process_enqueue(self, call):
        call.headers = None


class Misspelt(OnLoop):
    def process_request(self, request):
        """Be Django's middleware, too."""

    def proces_enqueue(self, call):
        """Add headers that never come."""


class LateHeaders(Tenant):
    async def process_enqueue(self, call):
        """Add headers once somebody awaits it."""


class Incapable:
    sync_capable = async_capable = False


number = 3


@task(max_attempts=1)
def tell(value):
    """Return the tenant and the argument."""
    return [tenant.get(), value]


@task(max_attempts=3, backoff=0)
def answer():
    """Return something."""
    return 1


@task(max_attempts=1)
async def atell(value):
    """See tell()."""
    return [tenant.get(), value]


@task(max_attempts=1)
def fail(value):
    raise ValueError(value)


@task(max_attempts=1)
async def afail(value):
    raise ValueError(value)


@sync_and_async_middleware
def german(call_next):
    """Set the language, for tasks of both kinds."""
    if iscoroutinefunction(call_next):

        async def on_loop(attempt):
            with translation.override("de"):
                return await call_next(attempt)

        return on_loop

    def in_thread(attempt):
        with translation.override("de"):
            return call_next(attempt)

    return in_thread


@task(max_attempts=1)
def language():
    return translation.get_language()


@task(max_attempts=1)
async def alanguage():
    return translation.get_language()
