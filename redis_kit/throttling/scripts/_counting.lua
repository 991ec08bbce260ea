-- Count calls in minutes, see minutes.lua.
-- needs  CALLS
-- gives  count, turn

local CYCLE, COUNT = 4320, 2 ^ 32

-- Counts of an earlier cycle are replaced.
local function count(minutes, minute, place, calls)
    local slot, cycle = "#" .. minute % CYCLE * 2 + place, math.floor(minute / CYCLE) * COUNT
    local total = redis.call("BITFIELD", minutes, "INCRBY", "i64", slot, calls)[1]
    if total - total % COUNT ~= cycle then
        redis.call("BITFIELD", minutes, "SET", "i64", slot, string.format("%.0f", cycle + calls))
        redis.call("EXPIRE", minutes, CYCLE * 60)
    end
end

-- Begin a minute with its first allowed call, which ``total`` has added to an earlier minute.
local function turn(latest, minutes, total, minute)
    local wrong, earlier = redis.pcall("STRLEN", minutes), total % CALLS - 1
    if type(wrong) == "table" then
        if total == 1 then
            redis.call("DEL", latest)
        else
            redis.call("SET", latest, string.format("%.0f", total - 1), "KEEPTTL")
        end
        error(wrong)
    end
    if earlier > 0 then
        count(minutes, math.floor(total / CALLS), 0, earlier)
    end
    redis.call("SET", latest, string.format("%.0f", minute * CALLS + 1), "EX", CYCLE * 60)
end
