"""A site with a stream of a chat, and nothing else: an ASGI application for uvicorn."""

import json
import os
import threading
import time

import django
from django.conf import settings

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["*"],
        INSTALLED_APPS=["redis_kit"],
        REDIS_KIT=json.loads(os.environ["STREAMS_REDIS_KIT"]),
        ROOT_URLCONF=__name__,
        SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is",
        USE_TZ=True,
    )
    django.setup()

from django.core.asgi import get_asgi_application
from django.urls import path

from redis_kit.mailbox import Chat
from redis_kit.mailbox.views import AsyncMailboxView


class ChatView(AsyncMailboxView):
    """A chat; whoever asks says who they are."""

    def authorize(self, request, chat):
        """See MailboxView."""
        return Chat(chat), request.GET["member"]

    async def aauthorize(self, request, chat):
        """See MailboxView: no thread is needed."""
        return self.authorize(request, chat)


def end_with(parent):
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
urlpatterns = [path("<str:chat>/", ChatView.as_view())]
application = get_asgi_application()
