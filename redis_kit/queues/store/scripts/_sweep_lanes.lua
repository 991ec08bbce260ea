-- Note for the next claim what lanes and limits should look like but do not: no script leaves them like that, but a worker of an
-- earlier release does, which knows no lanes, or a key that was damaged. At most 100 of each kind are looked at, by chance.
-- Returns whether anything was noted. Turns of jobs without a lane are forgotten while nothing waits in a lane.
-- needs  jobs, ready, scheduled, lanes, limits, parked, now
-- gives  sweep_lanes
local function sweep_lanes(held)
    local noted = false
    local function note(kind, name)
        redis.call("ZADD", parked, 0, "todo\n" .. kind .. " " .. name)
        noted = true
    end
    for _, id in ipairs(redis.call("HRANDFIELD", lanes, 100)) do
        if redis.call("HEXISTS", jobs, id) == 0 then redis.call("HDEL", lanes, id) end
    end
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[run\n", "(run\11")) do
        local limit, id = string.match(member, "^run\n([^\n]*)\n(.*)$")
        if not held[id or ""] and not redis.call("ZSCORE", scheduled, id or "") then  -- those another system has are scheduled
            redis.call("ZREM", parked, member)
            note("limit", limit or "")
        end
    end
    for _, member in ipairs(redis.call("ZRANDMEMBER", parked, 100)) do
        local kind, name = string.match(member, "^(%l+)\n([^\n]*)")
        local id = kind == "job" and string.match(member, "[^\n]*$")
        if kind == "turn" then
            note("limit", name)
        elseif id and redis.call("HEXISTS", jobs, id) == 0 then
            redis.call("ZREM", parked, member)
        elseif id and redis.call("HEXISTS", limits, "lane " .. name) == 0 then
            note("lane", name)
        end
    end
    for _, field in ipairs(redis.call("HRANDFIELD", limits, 100)) do
        local lane = string.match(field, "^lane (.*)$")
        local kind, _, id = string.match(lane and redis.call("HGET", limits, field) or "", "^(%l+) (%S+) (%S+)")
        if lane and kind ~= "waits" and not (redis.call("ZSCORE", ready, id or "") or redis.call("ZSCORE", scheduled, id or "")) then
            note("lane", lane)
        end
        local start = string.sub(field, 1, 5) == "next " and (tonumber(redis.call("HGET", limits, field)) or 0)
        if start and start < now * 1000 then redis.call("HDEL", limits, field) end
    end
    local waits = noted
    for _, kind in ipairs({"job", "todo", "turn"}) do
        waits = waits or #redis.call("ZRANGEBYLEX", parked, "[" .. kind .. "\n", "(" .. kind .. "\11", "LIMIT", 0, 1) > 0
    end
    for _, field in ipairs(waits and {} or redis.call("HRANDFIELD", limits, 100)) do
        if string.sub(field, 1, 7) == "others " then redis.call("HDEL", limits, field) end
    end
    return noted
end
