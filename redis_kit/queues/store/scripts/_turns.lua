-- Turns of lanes while no limit is set: all their jobs are ready, and the next one of a lane is a round behind its last one. So
-- a claim, which takes the first ready jobs, takes them from all lanes in turn, and reads nothing for that. This is
-- start-time fair queueing (Goyal, Vin and Cheng 1996). `turns` has the place of the last job of a lane and a priority.
-- needs  ready, sequence, lanes, limits, turns, place_of
-- gives  forget_turns, take_turns, ready_in_turn
local ROUND = 1024  -- jobs without a lane that may start while each lane starts one

-- The last of these places is no longer needed when others have overtaken it. More are removed than are added.
local function forget_turns(priority, head)
    for _, field in ipairs(redis.call("HRANDFIELD", turns, 5)) do
        local last = tonumber(redis.call("HGET", turns, field)) or 0
        if string.match(field, "^%S+") == priority and last + ROUND < head then redis.call("HDEL", turns, field) end
    end
end

-- The place of the first of `count` new jobs, and the distance from each to the next one.
local function take_turns(lane, priority, count)
    local first, priority = place_of(priority, 0), string.format("%.0f", priority)
    local from, to, field = string.format("%.0f", first), string.format("(%.0f", first + 2 ^ 44), priority .. " " .. lane
    local head = tonumber(redis.call("ZRANGEBYSCORE", ready, from, to, "WITHSCORES", "LIMIT", 0, 1)[2])
    local before = redis.call("INCRBY", sequence, 0)
    -- Jobs without a lane are to be behind the head, too.
    local now = head and first == 0 and math.max(before, math.floor(head)) or before
    local place, last = first + now + 1, string.match(redis.call("HGET", turns, field) or "", "^%-?%d+$")
    if head then place = math.max(place, math.ceil(head)) end
    if head and last then
        local tail = redis.call("ZRANGE", ready, to, from, "BYSCORE", "REV", "LIMIT", 0, 1, "WITHSCORES")[2]
        place = math.max(place, math.min(last, math.ceil(tail)) + ROUND)
    elseif not head and redis.call("EXISTS", ready) == 0 then
        redis.call("DEL", turns)
    end
    if place == first + now + 1 then now = now + 1 end
    if now > before then redis.call("INCRBY", sequence, now - before) end
    local is_new = redis.call("HSET", turns, field, string.format("%.0f", place + (count - 1) * ROUND)) == 1
    if is_new and head then forget_turns(priority, head) end
    return place, ROUND
end

-- Make a job ready, behind the others of its lane. False if it has none, or a limit is set: a claim finds its place then.
local function ready_in_turn(id, priority)
    local lane = redis.call("EXISTS", limits) == 0 and string.match(redis.call("HGET", lanes, id) or "", "^%S+ (.*)$")
    return lane and redis.call("ZADD", ready, string.format("%.0f", (take_turns(lane, priority, 1))), id)
end
