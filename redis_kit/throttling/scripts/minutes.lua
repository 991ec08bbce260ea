#!lua flags=no-writes
-- Read how many calls a throttle allowed and refused in each of the last minutes, as they are stored.
--
-- KEYS[1]  minutes  string: a cycle of 4320 minutes, each with two 64-bit numbers, allowed and refused. The lower half of
--                   a number is the count, the upper half the number of the cycle to which the count belongs. After the
--                   minutes come hours, see hours.lua
-- KEYS[2]  latest   counter: the last minute with allowed calls since 1970 times 2^26, plus the number of these calls,
--                   which minutes get when the next one begins
-- ARGV[1]  wanted   number of minutes, at most 4320
-- returns  {this minute since 1970, latest, numbers of these minutes, the oldest first; zeros at the end may be missing}

local CYCLE, SIZE = 4320, 16
local last = math.floor(redis.call("TIME")[1] / 60)
local first, begun, numbers = last - ARGV[1] + 1, last - last % CYCLE, ""
if first < begun then
    numbers = redis.call("GETRANGE", KEYS[1], first % CYCLE * SIZE, CYCLE * SIZE - 1)
    numbers = numbers .. string.rep("\0", (begun - first) * SIZE - #numbers)
end
first = math.max(first, begun)
numbers = numbers .. redis.call("GETRANGE", KEYS[1], first % CYCLE * SIZE, last % CYCLE * SIZE + SIZE - 1)
return {last, tonumber(redis.call("GET", KEYS[2]) or 0) or 0, numbers}
