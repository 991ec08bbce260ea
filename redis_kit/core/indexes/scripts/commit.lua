#!lua
-- Mark rows as changed.
--
-- KEYS[1]     announced  zset: announcement of a row -> when it counts as committed, microseconds
-- KEYS[2]     committed  zset: key of a row -> when it is to be written, microseconds
-- ARGV[1]     count      number of the announcements that end
-- ARGV[2...]  members    these announcements, then the keys of the rows
-- returns     nothing

local announced, committed = KEYS[1], KEYS[2]
-- @check_types announced, committed
local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000000 + clock[2])
for place = 2 + ARGV[1], #ARGV do
    redis.call("ZADD", committed, now, ARGV[place])
end
for place = 2, 1 + ARGV[1] do
    redis.call("ZREM", announced, ARGV[place])
end
