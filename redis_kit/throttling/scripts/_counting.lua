-- Count calls in the current minute, see minutes.lua. Counts of an earlier round of the ring are replaced.
-- needs  round, RING, COUNT
-- gives  count

local function count(key, index, calls)
    local total = redis.call("BITFIELD", key, "INCRBY", "i64", "#" .. index, calls)[1]
    if total - total % COUNT ~= round then
        redis.call("BITFIELD", key, "SET", "i64", "#" .. index, string.format("%.0f", round + calls))
        redis.call("EXPIRE", key, RING * 60)
    end
end
