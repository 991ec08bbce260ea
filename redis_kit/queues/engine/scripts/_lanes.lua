-- What becomes of lanes and limits when the state of a job changes; see _choose_jobs for what they are. Limits for which
-- lanes wait are noted for the next claim.
-- @keys lanes, limits, parked
-- needs  place_of
-- gives  note_limit, free_places, leave_lane, ready_place
local TIMED = "\n0000000000000000\n"
local function note_limit(name)
    local range = "turn\n" .. name
    local waits = #redis.call("ZRANGEBYLEX", parked, "[" .. range .. "\n", "(" .. range .. "\11", "LIMIT", 0, 1) > 0
    return waits and redis.call("ZADD", parked, 0, "todo\nlimit " .. name) and true
end

-- Free the places that jobs have in their limits, as they do not run any more: they go back to where they were in their lanes,
-- or to the end ("last"), or are over ("over"). Those that another system has ("away") keep their places, and come back to the
-- end. Returns whether a limit was noted.
local function free_places(ids, whither)
    local places, names, noted = {}, {}, false
    for at, stored in ipairs(redis.call("HMGET", lanes, unpack(ids))) do
        local lane = string.match(stored or "", "^%S+ (.*)$")
        for name in string.gmatch(lane or "", "%S+") do
            places[#places + 1], names[name] = "run\n" .. name .. "\n" .. ids[at], true
            if whither == "away" then redis.call("ZADD", parked, 0, places[#places]) end  -- also for limits that are set later
        end
        if lane and (whither == "last" or whither == "away") then redis.call("HSET", lanes, ids[at], "- " .. lane) end
    end
    if #places > 0 and whither ~= "away" and redis.call("ZREM", parked, unpack(places)) > 0 then
        for name in pairs(names) do noted = note_limit(name) or noted end
    end
    if whither == "over" and #places > 0 then redis.call("HDEL", lanes, unpack(ids)) end
    return noted
end

-- Take a job out of its lane, as it is removed. Returns whether others may start now.
local function leave_lane(id)
    local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    if not lane then
        return false
    end
    local noted, rest = false, lane .. "\n" .. rank .. "\n" .. id
    redis.call("HDEL", lanes, id)
    redis.call("ZREM", parked, "job\n" .. rest, "job\11" .. rest)
    for name in string.gmatch(lane, "%S+") do
        if redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id) == 1 then  -- another system had it
            noted = note_limit(name) or noted
        end
    end
    local kind, turn, head, limit = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
    local is_last = #redis.call("ZRANGEBYLEX", parked, "[job\n" .. lane .. "\n", "(job\n" .. lane .. "\11", "LIMIT", 0, 1) == 0
    if kind == "waits" and not is_last or kind and kind ~= "waits" and head ~= id then
        return noted
    end
    redis.call("HDEL", limits, "lane " .. lane)
    if is_last then
        redis.call("ZREM", parked, "todo\nlane " .. lane)
    else
        redis.call("ZADD", parked, 0, "todo\nlane " .. lane)
    end
    if kind == "waits" then
        redis.call("ZREM", parked, "turn\n" .. head .. "\n" .. turn .. "\n" .. lane)
    elseif kind == "timed" then
        redis.call("ZREM", parked, "turn\n" .. limit .. TIMED .. lane)
    end
    noted = noted or not is_last
    for name in string.gmatch(lane, "%S+") do noted = note_limit(name) or noted end
    return noted
end

-- The place of a job that gets ready. One that has a lane comes before those without one, among the heads of lanes: the next claim
-- finds it there, and it gets its place in its lane. It does not wait for its time any more.
local function ready_place(id, priority, turn)
    local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    if lane then redis.call("ZREM", parked, "job\11" .. lane .. "\n" .. rank .. "\n" .. id) end
    return string.format("%.0f", place_of(priority, turn) - (lane and 2 ^ 43 or 0))
end
