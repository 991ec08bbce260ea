"""What a server holds of a test, to be put back later: as a server that lost what came after."""


class Backup:
    """What a server held at one moment, which it can be made to hold again."""

    def __init__(self, kit):
        self.kit = kit
        keys = self._keys()
        self.values = dict(zip(keys, self._together([("DUMP", key) for key in keys]), strict=True))

    def contents(self):
        """Return what the server holds now, whatever the order of a hash is in its memory."""
        keys = self._keys()
        kinds = self._together([("TYPE", key) for key in keys])
        reads = {b"hash": "HGETALL"}
        found = [(reads.get(kind, "DUMP"), key) for kind, key in zip(kinds, keys, strict=True)]
        return dict(zip(keys, self._together(found), strict=True))

    def restore(self):
        """Delete what came after, and put back what was there."""
        restored = [("RESTORE", key, 0, value) for key, value in self.values.items()]
        self._together([*([("DEL", *keys)] if (keys := self._keys()) else []), *restored])

    def _keys(self):
        return list(self.kit.raw.scan_iter(f"{self.kit.prefix}:*", count=1000))

    def _together(self, commands):
        """Return the answers to commands, in one transaction."""
        with self.kit.raw.pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return pipeline.execute()
