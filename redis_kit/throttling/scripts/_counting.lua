-- Count calls in the current minute, see minutes.lua. Counts of an earlier cycle are replaced.
-- needs  cycle, CYCLE, COUNT
-- gives  count

local function count(key, index, calls)
    local total = redis.call("BITFIELD", key, "INCRBY", "i64", "#" .. index, calls)[1]
    if total - total % COUNT ~= cycle then
        redis.call("BITFIELD", key, "SET", "i64", "#" .. index, string.format("%.0f", cycle + calls))
        redis.call("EXPIRE", key, CYCLE * 60)
    end
end
