"""The numbers of a queue by minute, as they are stored."""

import struct


def count(queue, kit, minute, done=0, failed=0, begun=(0, 0, 0)):
    """Store the numbers of one minute: jobs done, attempts failed; jobs begun, how late together, and at most (ms)."""
    fields = {4 * minute: done, 4 * minute + 1: failed, 4 * minute + 2: struct.pack(">3Q", *begun)}
    kit.client.hset(queue.key("minutes"), mapping=fields)
