"""What a server holds of a test, to be put back later: as a server that lost what came after."""

import contextlib

import redis


class Backup:
    """What a server held at one moment, which it can be made to hold again."""

    def __init__(self, kit):
        self.kit = kit
        with self._client() as client:
            keys = self._keys(client)
            self.values = dict(zip(keys, _together(client, [("DUMP", key) for key in keys]), strict=True))

    def contents(self):
        """Return what the server holds now, whatever the order of a hash is in its memory."""
        with self._client() as client:
            keys = self._keys(client)
            kinds = _together(client, [("TYPE", key) for key in keys])
            reads = {b"hash": "HGETALL"}
            found = [(reads.get(kind, "DUMP"), key) for kind, key in zip(kinds, keys, strict=True)]
            return dict(zip(keys, _together(client, found), strict=True))

    def restore(self):
        """Delete what came after, and put back what was there."""
        with self._client() as client:
            gone = [("DEL", key) for key in self._keys(client)]
            _together(client, gone + [("RESTORE", key, 0, value) for key, value in self.values.items()])

    def _keys(self, client):
        return list(client.scan_iter(f"{self.kit.prefix}:*", count=1000))

    def _client(self):
        return contextlib.closing(redis.Redis.from_url(self.kit.url))


def _together(client, commands):
    """Return the answers to commands, in one transaction."""
    with client.pipeline(transaction=True) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)
        return pipeline.execute()
