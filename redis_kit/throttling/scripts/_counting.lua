local minute = math.floor(clock[1] / 60)
local round, slot = math.floor(minute / RING) * COUNT, minute % RING * 2

-- Count calls in this minute, see minutes.lua; where the ring came round, in place of those of then.
local function count(key, place, calls)
    local total = redis.call("BITFIELD", key, "INCRBY", "i64", "#" .. place, calls)[1]
    if total - total % COUNT ~= round then
        redis.call("BITFIELD", key, "SET", "i64", "#" .. place, string.format("%.0f", round + calls))
        redis.call("EXPIRE", key, RING * 60)
    end
end
