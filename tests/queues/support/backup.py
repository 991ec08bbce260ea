"""What a server holds of a test, to be put back later: as a server that lost what came after."""

import contextlib

import redis


class Backup:
    """What a server held at one moment, which it can be made to hold again."""

    def __init__(self, kit):
        self.kit = kit
        with self._client() as client:
            self.values = {key: client.dump(key) for key in client.scan_iter(f"{kit.prefix}:*", count=1000)}

    def contents(self):
        """Return what the server holds now, whatever the order of a hash is in its memory."""
        with self._client() as client:
            kinds = {key: client.type(key) for key in client.scan_iter(f"{self.kit.prefix}:*", count=1000)}
            return {key: client.hgetall(key) if kind == b"hash" else client.dump(key) for key, kind in kinds.items()}

    def restore(self):
        with self._client() as client, client.pipeline(transaction=True) as pipeline:
            for key in client.scan_iter(f"{self.kit.prefix}:*", count=1000):
                pipeline.delete(key)
            for key, value in self.values.items():
                pipeline.restore(key, 0, value)
            pipeline.execute()

    def _client(self):
        return contextlib.closing(redis.Redis.from_url(self.kit.url))
