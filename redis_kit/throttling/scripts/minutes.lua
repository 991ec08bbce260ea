-- Read how many calls a throttle allowed and refused in each of the last minutes.
--
-- KEYS[1]  minutes  string: a ring of 4320 minutes, two 64-bit numbers for each, allowed and refused; the upper half
--                   of a number is the round of the ring that the count in its lower half belongs to
-- ARGV[1]  wanted   how many minutes, at most 1440
-- returns  {this minute since 1970, then allowed and refused of each, the oldest first}

local RING, COUNT = 4320, 2 ^ 32
local minute = math.floor(redis.call("TIME")[1] / 60)
local found = {minute}
for one = minute - tonumber(ARGV[1]) + 1, minute do
    local slot = one % RING * 2
    local round = math.floor(one / RING) * COUNT
    local pair = redis.call("BITFIELD_RO", KEYS[1], "GET", "i64", "#" .. slot, "GET", "i64", "#" .. slot + 1)
    for _, number in ipairs(pair) do
        found[#found + 1] = number >= round and number < round + COUNT and number - round or 0
    end
end
return found
