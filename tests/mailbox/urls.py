"""Views of mailboxes for tests: the user is in a header, as a test client has no session."""

from django.http import HttpResponse
from django.urls import path

from redis_kit.mailbox import Chat, Inbox
from redis_kit.mailbox.views import AsyncMailboxView, MailboxView


def access(request, chat=None):
    user = request.headers.get("X-User")
    if not user:
        return None
    return (Chat(chat), user) if chat else Inbox(user)


class View(MailboxView):
    def authorize(self, request, **kwargs):
        return access(request, **kwargs)


class AsyncView(AsyncMailboxView):
    def authorize(self, request, **kwargs):
        return access(request, **kwargs)


class Wrong(MailboxView):
    def authorize(self, request, name=None):
        return name or Chat("office"), request.headers.get("X-User")


urlpatterns = [
    path("sync/inbox/", View.as_view()),
    path("sync/<str:chat>/", View.as_view()),
    path("async/inbox/", AsyncView.as_view()),
    path("async/<str:chat>/", AsyncView.as_view()),
    path("default/", MailboxView.as_view()),
    path("adefault/", AsyncMailboxView.as_view()),
    path("wrong/", Wrong.as_view()),
    path("wrong/<str:name>/", Wrong.as_view()),
    path("", lambda request: HttpResponse()),
]
