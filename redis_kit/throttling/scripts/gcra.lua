#!lua
-- Let a call pass if every rate of a throttle has room for it, or else take nothing from any.
--
-- KEYS[1]     state     string: when it was written, microseconds, then the level of each rate's bucket
-- KEYS[2]     minutes   string: calls by minute, see minutes.lua
-- ARGV[1]     cost      how many calls this one counts for
-- ARGV[2]     consume   1, or 0 to only look
-- ARGV[3]     unseen    calls that the caller refused by itself since it last asked
-- ARGV[4...]  rates     three numbers for each: drained in a microsecond, added by one call, capacity
-- returns     {1 or 0 for allowed, now in microseconds, the level of each rate}
--
-- A level is exact: no number here passes 2^53 unless it is far above a capacity. A clock that went back refills
-- nothing, and the level that it raises again ends at the capacity, so that nobody waits for longer than one drain.

local RING, COUNT = 4320, 2 ^ 32
local cost, consume, unseen = tonumber(ARGV[1]), ARGV[2] == "1", tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local stored = {}
for number in string.gmatch(redis.call("GET", KEYS[1]) or "", "%d+") do
    stored[#stored + 1] = tonumber(number)
end
local elapsed = now - (stored[1] or now)

local allowed, kept, filled, lasting = 1, {}, {}, 0
for place = 4, #ARGV, 3 do
    local drain, price, capacity = tonumber(ARGV[place]), tonumber(ARGV[place + 1]), tonumber(ARGV[place + 2])
    local level = (stored[#kept + 2] or 0) - elapsed * drain
    level = math.max(0, math.min(level, capacity))
    kept[#kept + 1], filled[#filled + 1] = level, level + cost * price
    if filled[#filled] > capacity then
        allowed = 0
    end
    lasting = math.max(lasting, math.ceil(filled[#filled] / drain / 1000))
end
if not consume then
    return {allowed, now, unpack(kept)}
end

local minute = math.floor(now / 60000000)
local round, slot = math.floor(minute / RING) * COUNT, minute % RING * 2
local function count(place, calls)
    local total = calls > 0 and redis.call("BITFIELD", KEYS[2], "INCRBY", "i64", "#" .. place, calls)[1]
    if total and total - total % COUNT ~= round then
        redis.call("BITFIELD", KEYS[2], "SET", "i64", "#" .. place, string.format("%.0f", round + calls))
        redis.call("EXPIRE", KEYS[2], RING * 60)
    end
end
count(slot, allowed)
count(slot + 1, 1 - allowed + unseen)

local levels = allowed == 1 and filled or kept
if allowed == 1 or elapsed < 0 then
    local state = string.format("%.0f", now)
    for _, level in ipairs(levels) do
        state = state .. string.format(" %.0f", level)
    end
    redis.call("SET", KEYS[1], state, "PX", lasting + 1)
end
return {allowed, now, unpack(levels)}
