-- Lanes. Jobs with the same group and limits are in one, and lanes take turns: by start-time fair queueing (Goyal and others,
-- 1996), a job that gets ready has the place of its lane's next free turn. So a claim takes the first jobs of `ready`, and looks
-- at lanes only where limits are. A lane's name is the names of its limits. With limits, `parked` has members of score 0:
--   job/<lane>/<rank>/<id>      a job whose turn came while a limit allowed no more: it is ready, and its lane waits
--   turn/<limit>/<turn>/<lane>  a lane that waits for a limit. Its state is "<turn> <limit> <rank> <place>": the rank and the
--                               place of the latest job that the limit let go on. It may be ready still: until it starts, later
--                               ones of the lane are parked, also if no other one is; then there is a - for turn and limit
--   run/<limit>/<id>            a running job that counts for a limit, or one that another system has
--   todo/from <limit>, todo/limit <limit>, todo/time <us> <limit>  what a claim is to look at, and when
-- with line feeds in place of the /. A rank is a place as text of 16 digits.
-- @keys lanes
-- @if rules|later
-- @keys turns, ready
-- @end rules|later
-- @if rules
-- @keys limits, parked
-- @end rules
-- needs  place_of
-- gives  rank_of, next_places, lane_place, note_limit, free_places, leave_lane, waiting_of, first_entry, first_parked, set_waiting, next_todo
local HALF, ROUND = 2 ^ 43, 16  -- places of one priority that lanes have; of one turn of all lanes
-- @if rules|later
local function rank_of(place)
    return string.format("%016.0f", 2 ^ 51 + place)
end

-- The first of the next places of a lane, a round apart. A lane that had no turn in the last round begins behind all others in this
-- one. What is stored about such lanes goes.
-- `total` is the counter with these jobs.
local function next_places(lane, priority, count, total)
    local start, member = place_of(priority, -HALF), string.format("%.0f ", priority) .. lane
    local from, to = string.format("%.0f", start), string.format("(%.0f", start + HALF)
    local first = tonumber(redis.call("ZRANGEBYSCORE", ready, from, to, "WITHSCORES", "LIMIT", 0, 1)[2])
    redis.call("ZREMRANGEBYSCORE", turns, from, first and string.format("(%.0f", first - ROUND) or to)
    local last = redis.call("ZSCORE", turns, member)
    local place = last and last + ROUND or start + ROUND * (total - count)
    if first and not last then
        local latest = redis.call("ZRANGE", ready, string.format("%.0f", first + ROUND - 1), from, "BYSCORE", "REV", "LIMIT", 0, 1, "WITHSCORES")
        place = math.min(latest[2] + 1, first + ROUND - 1)
    end
    place = math.min(place, start + HALF - 1 - ROUND * count)
    redis.call("ZADD", turns, string.format("%.0f", place + ROUND * (count - 1)), member)
    return place
end
-- @end rules|later
-- @if rules
-- The state of a lane that waits for a limit; nil for another one.
local function waiting_of(lane)
    local turn, limit, rank, place = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%S+) (%S+) (%d+) (%-?%d+)$")
    return turn and {turn = turn, limit = limit, rank = rank, place = tonumber(place)}
end

local function set_waiting(lane, limit, turn, rank, place)
    redis.call("HSET", limits, "lane " .. lane, turn .. " " .. limit .. " " .. rank .. string.format(" %.0f", place))
    return {turn = turn, limit = limit, rank = rank, place = place}
end

-- The first member of `parked` that begins with these parts.
local function first_entry(parts)
    return redis.call("ZRANGEBYLEX", parked, "[" .. parts .. "\n", "(" .. parts .. "\11", "LIMIT", 0, 1)[1]
end

local function first_parked(lane)
    local member = first_entry("job\n" .. lane)
    local rank, id = string.match(member or "", "(%d+)\n([^\n]*)$")
    return rank, id, member
end

-- Limits for which lanes wait are noted for the next claim.
local function note_limit(name)
    return first_entry("turn\n" .. name) and redis.call("ZADD", parked, 0, "todo\nlimit " .. name) and true
end

-- In which ms something is to be looked at, 0 for now; nil without anything.
local function next_todo()
    local entry = first_entry("todo")
    return entry and (tonumber(string.match(entry, "^todo\ntime (%d+) ")) or 0) / 1000
end
-- @end rules
-- @if rules|later
-- The place of a job that gets ready, nil without a lane. It has no places in limits any more, as it would if another system
-- had it.
local function lane_place(id, priority, total)
    local _, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    if not lane then return nil end
    local place = next_places(lane, priority, 1, total)
    redis.call("HSET", lanes, id, rank_of(place) .. " " .. lane)
    -- @if rules
    for name in string.gmatch(lane, "%S+") do
        if redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id) == 1 then note_limit(name) end
    end
    -- @end rules
    return string.format("%.0f", place)
end
-- @end rules|later

-- Free the places that jobs have in their limits. Returns whether a limit was noted.
local function free_places(ids)
    local noted = false
    -- @if rules
    local places, names = {}, {}
    for at, stored in ipairs(redis.call("HMGET", lanes, unpack(ids))) do
        for name in string.gmatch(string.match(stored or "", "^%S+ (.*)$") or "", "%S+") do
            places[#places + 1], names[name] = "run\n" .. name .. "\n" .. ids[at], true
        end
    end
    if #places > 0 and redis.call("ZREM", parked, unpack(places)) > 0 then
        for name in pairs(names) do noted = note_limit(name) or noted end
    end
    -- @end rules
    return noted
end
-- @if rules

-- Take a job out of its lane, as it is removed. Returns whether others may start now.
local function leave_lane(id)
    local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    if not lane then
        return false
    end
    local noted, waits = false, waiting_of(lane)
    redis.call("ZREM", parked, "job\n" .. lane .. "\n" .. rank .. "\n" .. id)
    redis.call("HDEL", lanes, id)
    if waits and not first_parked(lane) then
        redis.call("HDEL", limits, "lane " .. lane)
        redis.call("ZREM", parked, "turn\n" .. waits.limit .. "\n" .. waits.turn .. "\n" .. lane)
    end
    for name in string.gmatch(lane, "%S+") do
        redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id)  -- another system had it
        noted = note_limit(name) or noted
    end
    return noted
end
-- @end rules
