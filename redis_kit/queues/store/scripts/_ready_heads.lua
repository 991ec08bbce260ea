-- Read the first ready jobs. One that is in a lane, and not its head, gets its place there instead.
-- needs  lanes, parked, ready, rank_of, job_member, state_of, refresh_lane
-- gives  leave_places, read_ready
-- Free the places of a job that another system had, and did not begin in time.
local function leave_places(lane, id)
    for name in string.gmatch(lane, "%S+") do
        if redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id) == 1 then
            redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
        end
    end
end

-- Read the first ready jobs. A job of a lane that is not its head gets its place in the lane.
local function read_ready(window)
    local found, list, ids = redis.call("ZRANGE", ready, 0, window - 1, "WITHSCORES"), {}, {}
    for at = 1, #found, 2 do ids[#ids + 1] = found[at] end
    local of_ids, strays = #ids > 0 and redis.call("HMGET", lanes, unpack(ids)), {}
    for at, id in ipairs(ids) do
        local rank, lane = string.match(of_ids[at] or "", "^(%S+) (.*)$")
        local state, place = lane and state_of(lane), tonumber(found[2 * at])
        if lane and #rank ~= 16 then
            rank = rank_of(place)
            redis.call("HSET", lanes, id, rank .. " " .. lane)
            leave_places(lane, id)
        end
        if lane and not (state and state.id == id) then
            redis.call("ZREM", ready, id)
            redis.call("ZADD", parked, 0, job_member(lane, rank, id))
            strays[lane] = true
        end
        list[at] = {id = id, text = found[2 * at], place = place, lane = lane, rank = state and state.rank}
    end
    for lane in pairs(strays) do refresh_lane(lane) end
    return list, next(strays), #ids == window
end
