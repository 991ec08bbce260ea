"""Clients of a Cluster: each command goes to the node of its key's slot. Written once, as flows over clients of nodes.

Redirections (MOVED, ASK) are followed, since the node that sends one has carried out nothing. The same holds for
TRYAGAIN, the answer to a script while only some of its keys have moved. A command is never sent again after a lost
connection.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from operator import attrgetter, itemgetter
from time import monotonic
from typing import Any, Self

from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, TryAgainError

from redis_kit.core import flow
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.steps import Argument, Command, Sleep

Node = tuple[str, int]
REDIRECTIONS = 5
REDIRECTED = (AskError, TryAgainError)  # a MovedError is an AskError
PAUSES = (0.01, 0.02, 0.04, 0.08)  # seconds for which a slot may be half here and half there
REFRESH = 0.3  # seconds between looks at the topology, at least


class Topology:
    """The node of each slot, as the Cluster stated it last."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes: list[Node] = list(nodes)
        self.stale = True
        self._owners: list[tuple[int, int, Node]] = []  # first and last slot of each range, the lowest first
        self._moved: dict[int, Node] = {}
        self._looked = 0.0

    def primaries(self) -> list[Node]:
        """Return the nodes that serve slots."""
        return list(dict.fromkeys(node for _, _, node in self._owners))

    def owner(self, slot: int) -> Node:
        """Return the node of a slot. Raises RedisUnavailable if no node serves it."""
        if slot in self._moved:
            return self._moved[slot]
        owners = self._owners  # another thread may replace it
        place = bisect_right(owners, slot, key=itemgetter(0))
        if place and slot <= owners[place - 1][1]:
            return owners[place - 1][2]
        self.stale = True
        raise RedisUnavailable(f"No node of the Cluster serves slot {slot} now.")

    def may_look(self) -> bool:
        """Tell whether to ask for the topology now: it is stale, and was not asked for just before."""
        return self.stale and (not self._owners or monotonic() - self._looked >= REFRESH)

    def learn(self, reply: Sequence[Any], asked: Node) -> None:
        """Take in a reply of CLUSTER SLOTS."""
        self._owners = sorted((first, last, _node(primary, asked)) for first, last, primary, *_ in reply)
        self._moved, self.stale, self._looked = {}, False, monotonic()
        answered = [_node(entry, asked) for _, _, *entries in reply for entry in entries]
        self.nodes = list(dict.fromkeys([*answered, *self.nodes]))[:64]

    def move(self, slot: int, node: Node) -> None:
        """Note a slot's new node. The rest of the topology is asked for again soon."""
        self._moved[slot], self.stale = node, True


class OnNode:
    """A step of the flows below: one method of the client of one node."""

    def __init__(self, node: Node, method: str, *arguments: Any) -> None:
        self.node, self.method, self.arguments = node, method, arguments

    def run(self, nodes: Callable[[Node], Any]) -> Any:
        """Call the method."""
        return getattr(nodes(self.node), self.method)(*self.arguments)

    async def arun(self, nodes: Callable[[Node], Any]) -> Any:
        """See run()."""
        return await getattr(nodes(self.node), self.method)(*self.arguments)


class _Routing:
    """The base of both clients: the flows, and one client per node."""

    is_cluster = True

    def __init__(self, nodes: Sequence[Node], connect: Callable[[Node], Any]) -> None:
        self._topology, self._connect = Topology(nodes), connect
        self._nodes: dict[Node, Any] = {}
        self._wait: float | None = None

    def check(self) -> None:
        """Do nothing: each node has a breaker of its own."""

    def within(self, seconds: float) -> Self:
        """See Client.within()."""
        hurried = copy(self)
        hurried._wait = seconds
        return hurried

    def call(self, *command: Argument) -> Any:
        """See Client.call()."""
        return self._carry_out(self._single("call", (), command))

    def block(self, timeout: float, *command: Argument) -> Any:
        """See Client.block()."""
        return self._carry_out(self._single("block", (timeout,), command))

    def watch(self, timeout: float, pause: float, look: Callable[[], Any], waiting: Command, next_one: Command) -> Any:
        """See Client.watch()."""
        return self._carry_out(self._single("watch", (timeout, pause, look), waiting, next_one))

    def batch(self, commands: Sequence[Command]) -> Any:
        """See Client.batch(). One round trip per node."""
        return self._carry_out(self._many(commands))

    def close(self) -> None:
        """Close the connections to every node; see Client.close()."""
        for node in self._nodes.values():
            node.close()

    def _carry_out(self, steps: flow.Flow[Any]) -> Any:
        """Return the result of a flow, or a coroutine that does."""
        raise NotImplementedError

    def _node(self, node: Node) -> Any:
        existing = self._nodes.get(node)
        if existing is None:
            # Threads that come here at once share one client; the others were never connected.
            existing = self._nodes.setdefault(node, self._connect(node))
        return existing if self._wait is None else existing.within(self._wait)

    def _single(self, method: str, before: Sequence[Any], command: Command, *more: Command) -> flow.Flow[Any]:
        for pause in PAUSES:
            try:
                return (yield from self._directed(method, before, command, *more))
            except TryAgainError:
                if more:  # the wait is over
                    method, before, command, more = "call", (), more[-1], ()
                yield Sleep(pause)
        try:
            return (yield from self._directed(method, before, command, *more))
        except TryAgainError as error:
            raise RedisUnavailable(f"The Cluster is moving slot {slot_of(command)}: {error}") from error

    def _directed(self, method: str, before: Sequence[Any], command: Command, *more: Command) -> flow.Flow[Any]:
        slot = slot_of(command)
        yield from self._look()
        node = self._topology.owner(slot)
        importer: Node | None = None
        for _ in range(REDIRECTIONS):
            try:
                if importer:
                    return (yield from self._ask(importer, more[-1] if more else command))
                return (yield OnNode(node, method, *before, *([command, *more] if more else command)))
            except MovedError as moved:
                node, importer = self._owner_after(moved, slot, node), None
            except AskError as ask:
                if more:  # nothing waits at a slot on the move; the command behind is sent all the same
                    yield Sleep(0.1)
                importer = (ask.host or node[0], ask.port)
            except RedisUnavailable:
                self._topology.stale = True
                raise
        raise RedisUnavailable(f"The Cluster moved slot {slot} {REDIRECTIONS} times during one command.")

    def _ask(self, importer: Node, command: Command) -> flow.Flow[Any]:
        """Send a command to the node that takes over its slot."""
        replies: dict[int, Any] = {}
        yield from self._send([command], {0: importer}, replies, ("ASKING",))
        if isinstance(replies[0], Exception):
            raise replies[0]
        return replies[0]

    def _many(self, commands: Sequence[Command]) -> flow.Flow[list[Any]]:
        yield from self._look()
        due: dict[int, Node] = {}
        replies: dict[int, Any] = {}
        for place, command in enumerate(commands):
            try:
                due[place] = self._topology.owner(slot_of(command))
            except RedisUnavailable as unserved:
                replies[place] = unserved
        for pause in (*PAUSES, 0):
            yield from self._send(commands, due, replies)
            asks = {place: replies[place] for place in due if type(replies[place]) is AskError}
            importers = {place: (ask.host or due[place][0], ask.port) for place, ask in asks.items()}
            yield from self._send(commands, importers, replies, ("ASKING",))
            due = {
                place: self._owner_after(replies[place], slot_of(commands[place]), node)
                for place, node in due.items()
                if isinstance(replies[place], REDIRECTED)
            }
            if any(isinstance(replies[place], TryAgainError) for place in due):
                yield Sleep(pause)
        for place in due:
            error = replies[place]
            replies[place] = RedisUnavailable(f"The Cluster is moving slot {slot_of(commands[place])}: {error}")
            replies[place].__cause__ = error
        answers = [replies[place] for place in range(len(commands))]
        if answers and all(isinstance(answer, RedisUnavailable) for answer in answers):
            raise max(answers, key=attrgetter("indeterminate"))  # as from one server that is lost
        return answers

    def _send(
        self, commands: Sequence[Command], nodes: Mapping[int, Node], replies: dict[int, Any], *before: Command
    ) -> flow.Flow[None]:
        """Send the commands at some places of a batch, one batch for each node. ``before`` precedes each of them.

        The commands of a node that does not answer have its error as their reply.
        """
        places: dict[Node, list[int]] = defaultdict(list)
        for place, node in nodes.items():
            places[node].append(place)
        for node, where in places.items():
            try:
                answers = yield OnNode(node, "batch", [each for place in where for each in (*before, commands[place])])
            except RedisUnavailable as error:
                self._topology.stale = True
                replies.update(dict.fromkeys(where, error))
                continue  # the other nodes may answer
            size = len(before) + 1
            for place, start in zip(where, range(0, len(answers), size), strict=True):
                *refusals, reply = answers[start : start + size]
                replies[place] = next((each for each in refusals if isinstance(each, Exception)), reply)

    def _owner_after(self, error: Exception, slot: int, node: Node) -> Node:
        """Return the node of a slot after a redirection, and note it."""
        if isinstance(error, MovedError):
            node = (error.host or node[0], error.port)
            self._topology.move(slot, node)
        return node

    def _look(self) -> flow.Flow[None]:
        if not self._topology.may_look():
            return
        failure: Exception | None = None
        for node in tuple(self._topology.nodes):
            try:
                reply = yield OnNode(node, "call", "CLUSTER", "SLOTS")
            except (RedisUnavailable, ClusterDownError) as error:
                failure = error
            else:
                self._topology.learn(reply, node)
                return
        raise failure or RedisUnavailable("The Cluster has no node that answers.")


class ClusterClient(_Routing):
    """A client of a Cluster, for all threads of a process. The methods are those of Client."""

    def primaries(self) -> list[Any]:
        """Return a client of each node that serves slots. One round trip if the topology is not known."""
        self._carry_out(self._look())
        return [self._node(node) for node in self._topology.primaries()]

    def node_of(self, key: str, *, moved: bool = False) -> Any:
        """Return the client of the node that has a key. With ``moved``, the topology that was known is wrong."""
        self._topology.stale |= moved
        self._carry_out(self._look())
        return self._node(self._topology.owner(key_slot(key.encode())))

    def _carry_out(self, steps: flow.Flow[Any]) -> Any:
        return flow.run(steps, self._node)


class AsyncClusterClient(_Routing):
    """A client of a Cluster, for all tasks of one event loop. Its calls return coroutines; see ClusterClient."""

    def end(self) -> None:
        """See AsyncClient.end()."""
        for node in self._nodes.values():
            node.end()

    def _carry_out(self, steps: flow.Flow[Any]) -> Any:
        return flow.arun(steps, self._node)


def slot_of(command: Command) -> int:
    """Return the slot of a command's first key."""
    place = 3 if command[0] in ("EVAL", "EVALSHA") else 1
    key = command[place] if len(command) > place else ""
    return int(key_slot(key if isinstance(key, bytes) else str(key).encode()))


def _node(entry: Sequence[Any], asked: Node) -> Node:
    host = entry[0].decode() if isinstance(entry[0], bytes) else entry[0]
    return (host or asked[0], int(entry[1]))
