-- Free the places that jobs have in their limits, as they do not run any more: they go back to where they were in their lanes,
-- or to the end ("last"), or are over ("over"). Those that another system has ("away") keep their places, and come back to the
-- end. Limits for which lanes wait are noted for the next claim. Returns how many are.
-- needs  lanes, parked
-- gives  free_places, leave_lanes
local function free_places(ids, whither)
    local places, names, freed = {}, {}, 0
    for at, stored in ipairs(redis.call("HMGET", lanes, unpack(ids))) do
        local lane = string.match(stored or "", "^%S+ (.*)$")
        for name in string.gmatch(lane or "", "%S+") do
            places[#places + 1], names[name] = "run\n" .. name .. "\n" .. ids[at], true
            if whither == "away" then redis.call("ZADD", parked, 0, places[#places]) end  -- also for limits that are set later
        end
        if lane and (whither == "last" or whither == "away") then redis.call("HSET", lanes, ids[at], "- " .. lane) end
    end
    if #places > 0 and whither ~= "away" and redis.call("ZREM", parked, unpack(places)) > 0 then
        for name in pairs(names) do
            local range = "turn\n" .. name
            if #redis.call("ZRANGEBYLEX", parked, "[" .. range .. "\n", "(" .. range .. "\11", "LIMIT", 0, 1) > 0 then
                freed = freed + 1
                redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
            end
        end
    end
    if whither == "over" and #places > 0 then redis.call("HDEL", lanes, unpack(ids)) end
    return freed
end

-- Take jobs that are done out of their lanes. Returns how many limits are noted.
local function leave_lanes(ids)
    return redis.call("ZCARD", parked) > 0 and free_places(ids, "over") or redis.call("HDEL", lanes, unpack(ids)) * 0
end
