"""A browser that asks the views of tests, which are sync or async."""

import asyncio
import json

import pytest
from django.test import AsyncClient, Client


class Browser:
    """Requests of one user."""

    def __init__(self, kind, user="anna"):
        self.kind, self.user = kind, user

    def get(self, path, **headers):
        """Return the status and the content of a GET."""
        return self._answer("get", path, headers)

    def post(self, path, content=None, *, content_type="application/json", raw=None):
        """Return the status and the content of a POST of JSON."""
        data = json.dumps(content) if raw is None else raw
        return self._answer("post", path, {}, data=data, content_type=content_type)

    def events(self, path, count, *, after="", then=()):
        """Return the first events of a stream: name, id and data. ``then`` are called when it is open."""
        headers = {"accept": "text/event-stream"} | ({"last-event-id": after} if after else {})
        return asyncio.run(self._read(path, headers, count, then))

    async def _read(self, path, headers, count, then):
        if self.kind == "sync":
            response = await asyncio.to_thread(Client().get, f"/sync{path}", headers=headers | {"X-User": self.user})
        else:
            response = await AsyncClient().get(f"/async{path}", headers=headers | {"X-User": self.user})
        assert response.status_code == 200, response.content
        assert response["Content-Type"] == "text/event-stream"
        found, text, stream = [], b"", response.streaming_content
        calls = list(then)
        while len(found) < count:
            if self.kind == "sync":
                reading = asyncio.create_task(asyncio.to_thread(next, stream, None))
            else:
                reading = asyncio.ensure_future(anext(stream, None))
            if text:  # the stream has begun
                await asyncio.wait({reading}, timeout=0.3)
                while not reading.done() and calls:
                    await asyncio.to_thread(calls.pop(0))
            chunk = await asyncio.wait_for(reading, 20)
            if chunk is None:
                break
            text += chunk
            found = [event(block) for block in text.decode().split("\n\n")[1:-1] if not block.startswith(":")]
        await asyncio.to_thread(response.close)
        return found

    def _answer(self, method, path, headers, **options):
        client = Client() if self.kind == "sync" else AsyncClient()
        headers |= {"X-User": self.user} if self.user else {}
        response = getattr(client, method)(f"/{self.kind}{path}", headers=headers, **options)
        if self.kind == "async":
            response = asyncio.run(_awaited(response))
        return response.status_code, json.loads(response.content) if response.content else None


async def _awaited(response):
    return await response


def event(block):
    """Return the name, the id and the data of an event."""
    fields = dict(line.split(": ", 1) for line in block.splitlines())
    return fields.get("event", "message"), fields.get("id"), json.loads(fields.get("data", "null"))


@pytest.fixture(params=["sync", "async"])
def browser(request, settings):
    """A browser for the views of one kind."""
    settings.ROOT_URLCONF = "tests.mailbox.urls"
    settings.MIDDLEWARE = []
    return Browser(request.param)
