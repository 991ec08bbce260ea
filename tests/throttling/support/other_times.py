"""Calls of throttles as if the server's clock showed another time, by this release or by one that knew no hours."""

from pathlib import Path

from redis_kit.core import connections
from redis_kit.throttling.engine.decide import Call, decide
from redis_kit.throttling.statistics import counters, history

SCRIPTS = Path(counters.__file__).parent.parent / "scripts"
COUNTING = (SCRIPTS / "_counting.lua").read_text()
NO_HOURS = """
local CYCLE, COUNT = 4320, 2 ^ 32
local function count(minutes, minute, place, calls)
    local slot, cycle = "#" .. minute % CYCLE * 2 + place, math.floor(minute / CYCLE) * COUNT
    local total = redis.call("BITFIELD", minutes, "INCRBY", "i64", slot, calls)[1]
    if total - total % COUNT ~= cycle then
        redis.call("BITFIELD", minutes, "SET", "i64", slot, string.format("%.0f", cycle + calls))
        redis.call("EXPIRE", minutes, CYCLE * 60)
    end
end
local function turn(latest, minutes, total, minute)
    local earlier = total % CALLS - 1
    if earlier > 0 then
        count(minutes, math.floor(total / CALLS), 0, earlier)
    end
    redis.call("SET", latest, string.format("%.0f", minute * CALLS + 1), "EX", CYCLE * 60)
end
"""
OLD_MINUTES = """
local CYCLE, COUNT, CALLS = 4320, 2 ^ 32, 2 ^ 26
local minute = math.floor(redis.call("TIME")[1] / 60)
local counts = {minute}
for number = minute - tonumber(ARGV[1]) + 1, minute do
    local slot = number % CYCLE * 2
    local cycle = math.floor(number / CYCLE) * COUNT
    local pair = redis.call("BITFIELD_RO", KEYS[1], "GET", "i64", "#" .. slot, "GET", "i64", "#" .. slot + 1)
    for _, stored in ipairs(pair) do
        counts[#counts + 1] = stored >= cycle and stored < cycle + COUNT and stored - cycle or 0
    end
end
local latest = tonumber(redis.call("GET", KEYS[2]) or 0)
local index = 2 * (math.floor(latest / CALLS) - minute + ARGV[1])
if counts[index] then
    counts[index] = counts[index] + latest % CALLS
end
return counts
"""


def hit(limit, identity, second, *, old=False):
    """Return whether a call is allowed that the server decides in that second."""
    flow = decide([Call(limit, identity, 1)])
    step = next(flow)
    source = step.script.source
    if old:
        assert COUNTING in source
        source = source.replace(COUNTING, NO_HOURS)
    try:
        flow.send(_run(step, second, source))
    except StopIteration as ended:
        (outcome,) = ended.value
    return outcome.decision.allowed


def hours(limit, second, count):
    """Return [allowed, refused] of the hours up to that second that have calls, by hour since 1970."""
    return _by_start(_read(history.read(limit, count), second), 3600)


def minutes(limit, second, count):
    """Return [allowed, refused] of the minutes up to that second that have calls, by minute since 1970."""
    return _by_start(_read(counters.read([limit], count), second)[limit], 60)


def old_minutes(limit, second, count):
    """Return what a process that knew no hours reads in place of minutes()."""
    last, *numbers = _run(counters.MINUTES([limit.key("minutes"), limit.key("latest")], [count]), second, OLD_MINUTES)
    pairs = zip(range(last - count + 1, last + 1), numbers[::2], numbers[1::2], strict=True)
    return {minute: [allowed, refused] for minute, allowed, refused in pairs if allowed or refused}


def _read(flow, second):
    step = next(flow)
    try:
        flow.send([_run(call, second) for call in step.calls] if hasattr(step, "calls") else _run(step, second))
    except StopIteration as ended:
        return ended.value


def _run(step, second, source=""):
    _, _, *keys_and_args = step.command
    clock = f"({{ARGV[{len(keys_and_args) - keys_and_args[0]}], 0}})"
    source = (source or step.script.source).replace('redis.call("TIME")', clock)
    return connections.client().call("EVAL", source, *keys_and_args, second)


def _by_start(calls, seconds):
    return {
        int(each.start.timestamp()) // seconds: [each.allowed, each.refused]
        for each in calls
        if each.allowed or each.refused
    }
