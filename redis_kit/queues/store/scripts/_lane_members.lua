-- The members of `parked`, by kind; see _lanes. A rank is a place as text of 16 digits.
-- needs  parked
-- gives  range_of, rank_of, place_at, turn_of, job_member, turn_member
local BLOCK, MIDDLE, NOW = 2 ^ 44, 2 ^ 51, "0000000000000000"

local function range_of(kind, name, count, after)
    local first = after and "(" .. after or "[" .. kind .. "\n" .. name .. "\n"
    return redis.call("ZRANGEBYLEX", parked, first, "(" .. kind .. "\n" .. name .. "\11", "LIMIT", 0, count)
end

local function rank_of(place)
    return string.format("%016.0f", math.max(0, math.min(2 * MIDDLE, place + MIDDLE)))
end

-- The place of a rank's priority and of a turn among ready jobs.
local function place_at(rank, turn)
    local place = math.floor(((tonumber(rank) or MIDDLE) - MIDDLE) / BLOCK) * BLOCK + turn
    return string.format("%.0f", place == place and place or 0)
end

-- The turn in a place or rank.
local function turn_of(place)
    return (tonumber(place) or 0) % BLOCK
end

local function job_member(lane, rank, id)
    return "job\n" .. lane .. "\n" .. rank .. "\n" .. id
end

local function turn_member(limit, turn, lane)
    return "turn\n" .. limit .. "\n" .. (turn or NOW) .. "\n" .. lane
end
