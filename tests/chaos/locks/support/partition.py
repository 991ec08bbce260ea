"""A primary with two replicas and three Sentinels, which a cut makes two sides: the primary alone, and all others."""

import asyncio
from collections.abc import Sequence

from tests.fixtures.groups import SERVICE, WATCHING, SentinelProcess
from tests.fixtures.process import Server, wait_for
from tests.fixtures.proxy import Proxy


class Link(Proxy):
    """A proxy that passes bytes and not commands, as replication needs it; ``blackhole`` loses them."""

    async def _pass_requests(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        await self._pass(source, sink)

    async def _pass_replies(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._pass(source, sink)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            if self.mode != "blackhole":
                sink.write(part)
                await sink.drain()


class Partition:
    """The other servers know only the link's address. A client with the primary's own address still reaches it."""

    def __init__(self, options: Sequence[str]) -> None:
        self.primary = Server(tcp=True, extra_args=options)
        self.link = Link(self.primary.port)
        follow = ("--replicaof", "127.0.0.1", str(self.link.port), *options)
        self.replicas = [Server(tcp=True, extra_args=follow) for _ in range(2)]
        self.sentinels = [SentinelProcess(self.link.port) for _ in range(3)]
        wait_for(self._replicating)
        wait_for(self._settled, timeout=20)
        for sentinel in self.sentinels:
            sentinel.tune(WATCHING)

    def _replicating(self) -> bool:
        with self.primary.client() as client:
            client.set("first", 1)
            return bool(client.wait(len(self.replicas), 100) == len(self.replicas))

    def _settled(self) -> bool:
        known = [replica.port for replica in self.replicas]
        return all(
            state["num-other-sentinels"] == 2
            and state["flags"] == "master"
            and {replica["port"]: replica["flags"] for replica in replicas} == dict.fromkeys(known, "slave")
            for state, replicas in (sentinel.state() for sentinel in self.sentinels)
        )

    def cut(self) -> None:
        """Cut the primary off."""
        self.link.set("blackhole")

    def promoted(self) -> Server:
        """Wait until all Sentinels name the same new primary, and return it."""
        return wait_for(self._agreed, timeout=20)

    def _agreed(self) -> Server | None:
        ports = {sentinel.state()[0]["port"] for sentinel in self.sentinels}
        return next((replica for replica in self.replicas if ports == {replica.port}), None)

    def heal(self, new: Server) -> None:
        """Mend the link, and let the old primary follow the new one, as a Sentinel does 10 s later by itself."""
        self.link.set("rst")
        self.link.set("ok")
        with self.primary.client() as old:
            old.replicaof("127.0.0.1", new.port)
        wait_for(lambda: _follows(self.primary))

    @property
    def connection(self) -> dict[str, object]:
        """The settings of a client that asks the Sentinels for the primary."""
        return {"SENTINELS": [["127.0.0.1", sentinel.port] for sentinel in self.sentinels], "SERVICE": SERVICE}

    def close(self) -> None:
        """End all."""
        for process in (*self.sentinels, *self.replicas, self.link, self.primary):
            process.stop()


def _follows(server: Server) -> bool:
    with server.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")
