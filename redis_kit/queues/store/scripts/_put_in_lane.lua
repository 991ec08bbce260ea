-- Put new jobs into a lane: ready, in turn with those of other lanes, while no limit is set. With limits they wait in their
-- lane, which is noted for the next claim unless an earlier job of it is ready. Without a priority, as for jobs of later, only
-- note in which lane they are. `text` has a line for the lane, and two for each of its limits that the caller knows: its name,
-- and what the code allows, - for nothing.
-- needs  lanes, limits, parked, ready, sequence, place_of, take_turns, start_limits
-- gives  note_rules, put_in_lane
local function note_rules(lines, is_free)
    for at = 2, #lines, 2 do
        local field, allowed = "code " .. lines[at], lines[at + 1]
        if not (is_free and allowed == "-") and (redis.call("HGET", limits, field) or "-") ~= allowed then
            redis.call("ZADD", parked, 0, "rule\n" .. lines[at])
            redis.call("ZADD", parked, 0, "todo\nfrom ")
            start_limits()
            if allowed == "-" then redis.call("HDEL", limits, field) else redis.call("HSET", limits, field, allowed) end
            is_free = false
        end
    end
    return is_free
end

local function put_in_lane(text, ids, priority)
    local lines, of_ids, members = {}, {}, {}
    for line in string.gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    local lane = lines[1]
    local is_free = note_rules(lines, redis.call("EXISTS", limits) == 0)
    if not is_free then redis.call("ZCARD", parked) end
    local in_lane, place, step = "- " .. lane, nil, 1
    if priority and is_free then
        place, step = take_turns(lane, priority, #ids)
    elseif priority then
        place = place_of(priority, redis.call("INCRBY", sequence, #ids) - #ids + 1)
    end
    for at, id in ipairs(ids) do
        of_ids[2 * at - 1], of_ids[2 * at] = id, in_lane
        if place and is_free then
            members[2 * at - 1], members[2 * at] = place + (at - 1) * step, id
        elseif place then
            local rank = string.format("%016.0f", 2 ^ 51 + place + (at - 1) * step)
            of_ids[2 * at] = rank .. " " .. lane
            members[2 * at - 1], members[2 * at] = 0, "job\n" .. lane .. "\n" .. rank .. "\n" .. id
        end
    end
    redis.call("HSET", lanes, unpack(of_ids))
    if place and is_free then
        redis.call("ZADD", ready, unpack(members))
    elseif place then
        local kind, turn = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+)")
        redis.call("ZADD", parked, unpack(members))
        if not kind or kind ~= "waits" and string.match(of_ids[2], "^%S+") < turn then
            redis.call("ZADD", parked, 0, "todo\nlane " .. lane)
        end
    end
end
