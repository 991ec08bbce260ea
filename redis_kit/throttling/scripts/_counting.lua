-- Count calls in minutes, see minutes.lua and hours.lua.
-- needs  CALLS
-- gives  count, turn

local CYCLE, COUNT, KEPT = 4320, 2 ^ 32, 90 * 86400

local function count(minutes, minute, place, calls)
    local slot, cycle = "#" .. minute % CYCLE * 2 + place, math.floor(minute / CYCLE)
    local total = redis.call("BITFIELD", minutes, "INCRBY", "i64", slot, calls)[1]
    if total - total % COUNT == cycle * COUNT then
        return
    end

    -- The first calls of a minute. A string that grows bit by bit takes up to twice the memory.
    local HOURS, HOUR_COUNT = 2160, 2 ^ 40
    redis.call("BITFIELD", minutes, "SET", "i64", slot, string.format("%.0f", cycle * COUNT + calls))
    local missing = (CYCLE + HOURS) * 16 - redis.call("STRLEN", minutes)
    if missing > 0 then
        redis.call("SET", minutes, redis.call("GET", minutes) .. string.rep("\0", missing))
    end
    redis.call("EXPIRE", minutes, KEPT)

    -- They have replaced those of a minute some cycles ago, which move to their hour.
    local replaced = total - calls
    local moved, ago = replaced % COUNT, (cycle - math.floor(replaced / COUNT)) * CYCLE / 60
    if moved > 0 and math.abs(ago) < HOURS then
        local hour = math.floor(minute / 60) - ago
        slot, cycle = "#" .. (CYCLE + hour % HOURS) * 2 + place, math.floor(hour / HOURS)
        total = redis.call("BITFIELD", minutes, "INCRBY", "i64", slot, moved)[1]
        if total - total % HOUR_COUNT ~= cycle * HOUR_COUNT then
            local first = string.format("%.0f", cycle * HOUR_COUNT + moved)
            redis.call("BITFIELD", minutes, "SET", "i64", slot, first)
        end
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
    redis.call("SET", latest, string.format("%.0f", minute * CALLS + 1), "EX", KEPT)
end
