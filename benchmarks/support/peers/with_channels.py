"""channels_redis: a message to a group, and its receivers. It runs in an environment of its own."""

import asyncio
import sys

from channels_redis.core import RedisChannelLayer


async def main(url: str, members: int, messages: int, size: int) -> None:
    """Send messages to a group of channels, say so, and receive them all after a line of input."""
    layer = RedisChannelLayer(hosts=[url], capacity=10 * messages, expiry=600)
    channels = [await layer.new_channel() for _ in range(members)]
    for channel in channels:
        await layer.group_add("office", channel)
    for _ in range(messages):
        await layer.group_send("office", {"type": "say", "body": "x" * size})
    print("sent", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for channel in channels:
        for _ in range(messages):
            await layer.receive(channel)
    print("received", flush=True)


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
