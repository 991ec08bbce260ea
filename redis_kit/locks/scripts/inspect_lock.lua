#!lua flags=no-writes
-- Return the state of a lock.
--
-- KEYS[1]  holder   string as acquire.lua stores it
-- KEYS[2]  waiters  zset: token -> until when it counts as a waiter, ms on the server's clock
-- returns  {now in ms, as text; the holder, or nil; ms left of its lease; number of waiters}

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
local waiters = redis.call("ZCOUNT", KEYS[2], "(" .. now, "+inf")
return { now, redis.call("GET", KEYS[1]), redis.call("PTTL", KEYS[1]), waiters }
