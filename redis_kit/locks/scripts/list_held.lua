#!lua flags=no-writes
-- List the names that are held in one bucket, in the order in which their leases end.
--
-- KEYS[1]  live   zset: kind and name -> when the lease ends, ms on the server's clock
-- ARGV[1]  limit  members to return
-- returns  {now in ms, as text; how many are held; members and ends, alternating}

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
local held = redis.call("ZCOUNT", KEYS[1], "(" .. now, "+inf")
return { now, held, redis.call("ZRANGEBYSCORE", KEYS[1], "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, ARGV[1]) }
