"""The readers' chat, and the bell that rings for letters: both live, by Server-Sent Events."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from redis_kit.mailbox import Chat, Inbox
from redis_kit.mailbox.views import AsyncMailboxView

room = Chat("reading room")
KEPT = 100  # messages that new readers see


@require_safe
@login_required
def talk(request: HttpRequest) -> HttpResponse:
    """Show the chat. Whoever opens the page is a member from then on, and sees what was said before."""
    room.create(keep=KEPT)
    room.join(request.user.get_username(), history=True)
    return render(request, "reading/talk.html")


class TalkFeed(AsyncMailboxView):
    """The messages of the chat, for its members."""

    def authorize(self, request: HttpRequest, **kwargs: Any) -> tuple[Chat, str] | None:
        """See MailboxView."""
        return (room, request.user.get_username()) if request.user.is_authenticated else None


class BellFeed(AsyncMailboxView):
    """The notifications of a reader."""

    def authorize(self, request: HttpRequest, **kwargs: Any) -> Inbox | None:
        """See MailboxView."""
        return Inbox(request.user.get_username()) if request.user.is_authenticated else None
