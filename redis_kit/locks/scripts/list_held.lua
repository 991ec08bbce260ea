#!lua flags=no-writes
-- List the names that are held in one bucket, in the order in which their leases end.
--
-- KEYS[1]  live   zset: kind and name -> when the lease ends, ms on the server's clock; "fence" -> the last fence
-- ARGV[1]  limit  members to return
-- returns  {now in ms, as text; how many are held; members and ends, alternating}

local FENCES = 1e14 -- later than any lease ends, and before the fence
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
local held = redis.call("ZCOUNT", KEYS[1], "(" .. now, FENCES)
return { now, held, redis.call("ZRANGEBYSCORE", KEYS[1], "(" .. now, FENCES, "WITHSCORES", "LIMIT", 0, ARGV[1]) }
