-- Take a job out of its lane, as it is removed. If others may start then, it is noted for the next claim, and true is returned.
-- needs  lanes, limits, parked
-- gives  lane_of, waits_in_lane, waited_for, note_limit, leave_lane
local function lane_of(id)
    local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
    return lane, lane and "job\n" .. lane .. "\n" .. rank .. "\n" .. id
end

local function waits_in_lane(id)
    local lane, member = lane_of(id)
    return lane and redis.call("ZSCORE", parked, member)
end

local function waited_for(limit)
    local range = "turn\n" .. limit
    return #redis.call("ZRANGEBYLEX", parked, "[" .. range .. "\n", "(" .. range .. "\11", "LIMIT", 0, 1) > 0
end

local function note_limit(name)
    return waited_for(name) and redis.call("ZADD", parked, 0, "todo\nlimit " .. name) and true
end

local function leave_lane(id)
    local lane, member = lane_of(id)
    if not lane then
        return false
    end
    local noted = false
    redis.call("HDEL", lanes, id)
    redis.call("ZREM", parked, member)
    for name in string.gmatch(lane, "%S+") do
        if redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id) == 1 then  -- another system had it
            noted = note_limit(name) or noted
        end
    end
    local kind, rank, head, limit = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
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
        redis.call("ZREM", parked, "turn\n" .. head .. "\n" .. rank .. "\n" .. lane)
    elseif kind == "timed" then
        redis.call("ZREM", parked, "turn\n" .. limit .. "\n0000000000000000\n" .. lane)
    end
    noted = noted or not is_last
    for name in string.gmatch(lane, "%S+") do
        noted = note_limit(name) or noted
    end
    return noted
end
