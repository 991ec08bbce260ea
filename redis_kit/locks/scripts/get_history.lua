#!lua flags=no-writes
-- Return the waits and lost leases in one bucket in the last minutes or hours.
--
-- KEYS[1]  ring     string with the numbers of each minute or hour, as _statistics.lua stores them
-- ARGV[1]  size     minutes or hours in it
-- ARGV[2]  seconds  60 for minutes, 3600 for hours
-- ARGV[3]  count    how many minutes or hours to return, at least; others may be among them
-- returns  the present minute or hour since 1970; the numbers

local size, count = tonumber(ARGV[1]), tonumber(ARGV[3])
local now = math.floor(redis.call("TIME")[1] / ARGV[2])
local first = (now - count + 1) % size
local from_start = math.max(first + count - size, 0)
local older = redis.call("GETRANGE", KEYS[1], 24 * first, 24 * (first + count) - 1)
return { now, older .. (from_start > 0 and redis.call("GETRANGE", KEYS[1], 0, 24 * from_start - 1) or "") }
