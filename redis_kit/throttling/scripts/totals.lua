-- Add up how many calls a throttle allowed and refused in the last minutes.
--
-- KEYS[1]  minutes  string, see minutes.lua
-- KEYS[2]  latest   counter, see minutes.lua
-- ARGV[1]  wanted   number of minutes, at most 4320
-- returns  {allowed, refused}

local CYCLE, COUNT, CALLS, SIZE = 4320, 2 ^ 32, 2 ^ 26, 8
local last = math.floor(redis.call("TIME")[1] / 60)
local first, sums = last - tonumber(ARGV[1]) + 1, {0, 0}

-- Add minutes of one cycle, which are stored side by side.
local function add(from, to)
    local start, cycle_start = from % CYCLE * 2 * SIZE, math.floor(from / CYCLE) * COUNT
    local text = redis.call("GETRANGE", KEYS[1], start, start + (to - from + 1) * 2 * SIZE - 1)
    for index = 1, #text - SIZE + 1, SIZE do
        local number, which = struct.unpack(">i8", text, index), (index - 1) / SIZE % 2 + 1
        sums[which] = sums[which] + (number >= cycle_start and number < cycle_start + COUNT and number - cycle_start or 0)
    end
end

local cycle = last - last % CYCLE
if first < cycle then
    add(first, cycle - 1)
end
add(math.max(first, cycle), last)
local latest = tonumber(redis.call("GET", KEYS[2]) or 0)
local minute = math.floor(latest / CALLS)
if minute >= first and minute <= last then
    sums[1] = sums[1] + latest % CALLS
end
return sums
