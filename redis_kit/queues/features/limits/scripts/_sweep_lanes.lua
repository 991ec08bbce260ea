-- Note for the next claim what lanes and limits should look like but do not. No script leaves them like that, but a damaged key
-- may. At most 100 of each kind are looked at, by chance. Returns whether anything was noted.
-- @keys lanes, turns, limits, parked, sequence, jobs, scheduled
-- needs  now, first_parked, waiting_of, set_waiting
-- gives  sweep_lanes
local function sweep_lanes(held)
    local noted = false
    local function note(kind, name)
        redis.call("ZADD", parked, 0, "todo\n" .. kind .. " " .. name)
        noted = true
    end
    local function wait_again(lane)  -- as long as jobs of it are parked
        local rank, waits = first_parked(lane), waiting_of(lane)
        if not rank then
            redis.call("HDEL", limits, "lane " .. lane)
        elseif not waits or not redis.call("ZSCORE", parked, "turn\n" .. waits.limit .. "\n" .. waits.turn .. "\n" .. lane) then
            local name, turn = string.match(lane, "^%S+"), string.format("%016.0f", redis.call("INCRBY", sequence, 1))
            redis.call("ZADD", parked, 0, "turn\n" .. name .. "\n" .. turn .. "\n" .. lane)
            set_waiting(lane, name, turn, "0", rank - 2 ^ 51)
            note("limit", name)
        end
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
        local kind, name, id = string.match(member, "^(%l+)\n([^\n]*).-([^\n]*)$")
        if kind == "turn" then
            note("limit", name)
        elseif kind == "job" and redis.call("HEXISTS", jobs, id) == 0 then
            redis.call("ZREM", parked, member)
        elseif kind == "job" then
            wait_again(name)
        end
    end
    for _, field in ipairs(redis.call("HRANDFIELD", limits, 100)) do
        local lane = string.match(field, "^lane (.*)$")
        if lane then wait_again(lane) end
        local start = string.sub(field, 1, 5) == "next " and (tonumber(redis.call("HGET", limits, field)) or 0)
        if start and start < now * 1000 then redis.call("HDEL", limits, field) end
    end
    if redis.call("EXISTS", lanes) == 0 then redis.call("DEL", turns) end
    return noted
end
