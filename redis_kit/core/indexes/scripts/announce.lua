#!lua
-- Store that a row is about to change.
--
-- KEYS[1]  announced  zset: announcement of a row -> when it counts as committed, microseconds
-- ARGV[1]  grace      time until then, microseconds
-- ARGV[2]  member     the announcement: who made it, a space, and the key of the row or nothing
-- returns  nothing

local clock = redis.call("TIME")
redis.call("ZADD", KEYS[1], string.format("%.0f", clock[1] * 1000000 + clock[2] + ARGV[1]), ARGV[2])
