#!lua flags=no-writes
-- List the names that are held in one bucket, in the order in which their leases end, and those for which callers wait.
--
-- KEYS[1]  live     zset: kind and name -> when the lease ends, ms on the server's clock; "waits ", kind and name -> 1e14
--          and until when a caller may wait for it, ms; "fence" -> the last fence
-- ARGV[1]  limit    members to return
-- ARGV[2]  waiting  names with waiters to return
-- returns  {now in ms, as text; how many are held; members and ends, alternating; names with waiters, after "waits "}

local WAITS, FENCE = 1e14, 1e15 -- from which scores belong to waiters, and to the fence
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live, waits = string.format("(%.0f", now), string.format("(%.0f", WAITS + now)
return {
    string.format("%.0f", now),
    redis.call("ZCOUNT", KEYS[1], live, WAITS),
    redis.call("ZRANGEBYSCORE", KEYS[1], live, WAITS, "WITHSCORES", "LIMIT", 0, ARGV[1]),
    redis.call("ZRANGEBYSCORE", KEYS[1], waits, FENCE, "LIMIT", 0, ARGV[2]),
}
