-- Read how many calls a throttle allowed and refused in each of the last minutes.
--
-- KEYS[1]  minutes  string: a cycle of 4320 minutes, each with two 64-bit numbers, allowed and refused. The lower half of
--                   a number is the count, the upper half the number of the cycle to which the count belongs
-- KEYS[2]  latest   counter: the last minute with allowed calls since 1970 times 2^26, plus the number of these calls,
--                   which minutes get when the next one begins
-- ARGV[1]  wanted   number of minutes, at most 1440
-- returns  {this minute since 1970, then allowed and refused of each minute, the oldest first}

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
