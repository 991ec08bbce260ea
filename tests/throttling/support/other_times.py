"""Calls of throttles as if the server's clock showed another time."""

from redis_kit.core import connections
from redis_kit.throttling import statistics
from redis_kit.throttling.engine.decide import Call, decide


def hit(limit, identity, second):
    """Return whether a call is allowed that the server decides in that second."""
    flow = decide([Call(limit, identity, 1)])
    step = next(flow)
    try:
        flow.send(_run(step, second))
    except StopIteration as ended:
        (outcome,) = ended.value
    return outcome.decision.allowed


def hours(limit, second, count):
    """Return [allowed, refused] of the hours up to that second that have calls, by hour since 1970."""
    return _by_start(_read(statistics.read_hours(limit, count), second), 3600)


def minutes(limit, second, count):
    """Return [allowed, refused] of the minutes up to that second that have calls, by minute since 1970."""
    return _by_start(_read(statistics.read_minutes([limit], count), second)[limit], 60)


def _read(flow, second):
    step = next(flow)
    try:
        flow.send([_run(call, second) for call in step.calls] if hasattr(step, "calls") else _run(step, second))
    except StopIteration as ended:
        return ended.value


def _run(step, second):
    _, _, *keys_and_args = step.command
    clock = f"({{ARGV[{len(keys_and_args) - keys_and_args[0]}], 0}})"
    source = step.script.source.replace('redis.call("TIME")', clock)
    return connections.client().call("EVAL", source, *keys_and_args, second)


def _by_start(calls, seconds):
    return {
        int(each.start.timestamp()) // seconds: [each.allowed, each.refused]
        for each in calls
        if each.allowed or each.refused
    }
