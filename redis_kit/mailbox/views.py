"""Views for clients in a browser: JSON and Server-Sent Events at one address. They refuse until a project allows."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views import View

from redis_kit.core.channels import PASSING, in_turn, until_found
from redis_kit.core.errors import InvalidName, InvalidValue, PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.text import shortened
from redis_kit.mailbox.chat import Chat
from redis_kit.mailbox.errors import ChatNotFound, MessageNotFound, NotMember, NotSender
from redis_kit.mailbox.inbox import Inbox
from redis_kit.mailbox.message import DELETED, encoded
from redis_kit.mailbox.stream import EventStream, close_databases, end_thread

POLL = 25.0  # seconds that a request for JSON may wait
STATUSES: dict[type[Exception], int] = {
    **dict.fromkeys((InvalidName, InvalidValue), 400),
    **dict.fromkeys((NotMember, NotSender), 403),
    **dict.fromkeys((ChatNotFound, MessageNotFound), 404),
    **dict.fromkeys((RedisUnavailable, PoolExhausted), 503),
}
PRIVATE = {"Cache-Control": "no-store"}
UNBUFFERED = PRIVATE | {"X-Accel-Buffering": "no", "Content-Encoding": "identity"}  # by proxies and GZipMiddleware


class MailboxView(View):
    """Messages of a chat or an inbox, and what a client sends: JSON with Django's CSRF token.

    GET takes ``after`` (an id), ``limit``, and ``timeout`` (seconds), and for a chat ``before``. If the client accepts
    ``text/event-stream``, it gets that, after the ``Last-Event-ID``. Reading an inbox leases nothing.

    POST takes for an inbox ids as ``ack``; for a chat a ``body``, maybe with a ``client_id``, or an id as ``ack``, as
    ``delete``, or as ``edit`` with a ``body``. Members change their own messages only.
    """

    http_method_names = ["get", "post"]

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Return the view, for ATOMIC_REQUESTS without a transaction, which a request that waits would hold."""
        view = super().as_view(**initkwargs)
        for alias in connections:
            transaction.non_atomic_requests(alias)(view)
        return view

    def authorize(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Inbox | tuple[Chat, str] | None:
        """Return an Inbox, or a Chat and the name of the member who asks. None, as here, refuses with 403."""
        return None

    async def aauthorize(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Inbox | tuple[Chat, str] | None:
        """See authorize(), which is called in a thread."""
        return await sync_to_async(self.authorize)(request, *args, **kwargs)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Answer in this thread."""
        try:
            box, member = _opened(self.authorize(request, *args, **kwargs))
            return _response(box.run_flow(_answer(request, box, member, close_databases)), iter)
        except tuple(STATUSES) as error:
            return _refusal(error)

    post = get


class AsyncMailboxView(MailboxView):
    """See MailboxView. Requests that wait take no thread."""

    async def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer in this task."""
        try:
            box, member = _opened(await self.aauthorize(request, *args, **kwargs))
            return _response(await box.arun_flow(_answer(request, box, member, end_thread)), aiter)
        except tuple(STATUSES) as error:
            return _refusal(error)

    post = get


def _answer(request: HttpRequest, box: Chat | Inbox, member: str, prepare: Callable[[], None]) -> Flow[Any]:
    """Return the content of an answer, or the events in place of it. ``prepare`` is called before it waits."""
    if request.method == "POST":
        return (yield from _carried_out(_content(request), box, member))
    query = request.GET.dict()
    after, limit = query.get("after") or None, _number(query, "limit", 50)
    timeout = min(POLL, _number(query, "timeout", 0))
    if "text/event-stream" in request.headers.get("Accept", ""):
        after = request.headers.get("Last-Event-ID") or after
        # After a status an EventSource does not connect again: one that may not read gets it, and none in an outage.
        with suppress(*PASSING):
            yield from in_turn(box.read_flow(1, after, member))
        return EventStream(box, member, after)
    if timeout:
        prepare()
    if isinstance(box, Inbox):
        pulled = yield from until_found(box.using, box.wake, partial(box.read_flow, limit, after), timeout)
        return {"messages": [message.as_json() for message in pulled.messages], "missed": pulled.missed}
    if before := query.get("before"):
        return {"messages": [message.as_json() for message in (yield from box.history_flow(before, limit, member))]}
    fetched = yield from box.fetch_flow(member, limit, timeout, after)
    return fetched._asdict() | {"messages": [message.as_json() for message in fetched.messages]}


def _carried_out(content: Any, box: Chat | Inbox, member: str) -> Flow[dict[str, Any]]:
    """Carry out what a client has sent, and return the answer."""
    match box, content:
        case Inbox(), {"ack": [*ids], **rest} if not rest:
            return {"acknowledged": (yield from box.settle_flow("ack", ids))}
        case Chat(), {"body": body, **rest} if not rest.keys() - {"client_id"}:
            return {"number": (yield from box.send_flow(member, body, content.get("client_id", "")))}
        case Chat(), {"ack": id, **rest} if not rest:
            return {"read": (yield from box.ack_flow(member, id))}
        case Chat(), {"edit": id, "body": body, **rest} if not rest:
            yield from box.edit_flow(id, *encoded(body), member)
            return {"edited": id}
        case Chat(), {"delete": id, **rest} if not rest:
            yield from box.edit_flow(id, DELETED, "", member)
            return {"deleted": id}
    raise InvalidValue("An inbox takes ids as ack. A chat takes a body, or an id as ack, delete, or edit with a body.")


def _opened(access: Inbox | tuple[Chat, str] | None) -> tuple[Chat | Inbox, str]:
    """Return the box and the member of what a project allows."""
    box, member = access if isinstance(access, tuple) and len(access) == 2 else (access, "")
    if box is None:
        raise NotMember("You may not use this mailbox.")
    if not (isinstance(box, Inbox) or (isinstance(box, Chat) and isinstance(member, str) and member)):
        raise TypeError(f"authorize() must return an Inbox, a Chat and a member, or None, not {shortened(access)}.")
    return box, member


def _content(request: HttpRequest) -> Any:
    if request.content_type != "application/json":
        raise InvalidValue("Send JSON, with the content type application/json.")
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError):
        raise InvalidValue("The content is not valid JSON.") from None


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "") or str(default)
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidValue(f"{name} must be a whole number, not {shortened(text)}.")
    return int(text)


def _refusal(error: Exception) -> JsonResponse:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    text = "The messages are not available now." if status == 503 else str(error)
    return JsonResponse({"error": text}, status=status, headers=PRIVATE)


def _response(answer: dict[str, Any] | EventStream, iterated: Any) -> HttpResponseBase:
    if isinstance(answer, EventStream):
        return StreamingHttpResponse(iterated(answer), content_type="text/event-stream", headers=UNBUFFERED)
    return JsonResponse(answer, headers=PRIVATE)
