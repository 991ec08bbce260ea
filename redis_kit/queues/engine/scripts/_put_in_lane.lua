-- Put new jobs into a lane. The first one of a lane without limits is ready at once; with limits, the lane is noted for the next
-- claim, unless an earlier job of it is ready. Without a priority, as for jobs of later, only note in which lane they are.
-- `text` has a line for the lane, and two for each of its limits that the caller knows: its name, and what the code allows, -
-- for nothing.
-- @keys lanes, limits, parked, ready, sequence
-- needs  place_of, use_feature
-- gives  note_rules, has_limits, put_in_lane
local function note_rules(lines)
    for at = 2, #lines, 2 do
        local field, allowed = "code " .. lines[at], lines[at + 1]
        if (redis.call("HGET", limits, field) or "-") ~= allowed then
            use_feature(64)
            redis.call("ZADD", parked, 0, "rule\n" .. lines[at])
            redis.call("ZADD", parked, 0, "todo\nfrom ")
            if allowed == "-" then redis.call("HDEL", limits, field) else redis.call("HSET", limits, field, allowed) end
        end
    end
end

local function has_limits(lane)
    for name in string.gmatch(lane, "%S+") do
        local all = string.gsub(string.gsub(name, "^(group=).*", "%1*"), "(&[^=]+=)[^&]*", "%1*")
        local own, set, code = unpack(redis.call("HMGET", limits, "set " .. name, "set " .. all, "code " .. all))
        if own or set or code then return true end
    end
    return false
end

local function put_in_lane(text, ids, priority)
    local lines, of_ids, members = {}, {}, {}
    for line in string.gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    local lane = lines[1]
    use_feature(1)
    redis.call("ZCARD", parked)
    redis.call("ZCARD", ready)
    note_rules(lines)
    if not priority then
        for at, id in ipairs(ids) do of_ids[2 * at - 1], of_ids[2 * at] = id, "- " .. lane end
        return redis.call("HSET", lanes, unpack(of_ids))
    end
    local last, first_rank = redis.call("INCRBY", sequence, #ids), nil
    for at, id in ipairs(ids) do
        local rank = string.format("%016.0f", 2 ^ 51 + place_of(priority, last - #ids + at))
        first_rank = first_rank or rank
        of_ids[2 * at - 1], of_ids[2 * at] = id, rank .. " " .. lane
        members[2 * at - 1], members[2 * at] = 0, "job\n" .. lane .. "\n" .. rank .. "\n" .. id
    end
    redis.call("HSET", lanes, unpack(of_ids))
    local kind, turn = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+)")
    if not kind and not has_limits(lane) then
        redis.call("ZADD", ready, string.format("%.0f", place_of(priority, last - #ids + 1) - 2 ^ 43), ids[1])
        redis.call("HSET", limits, "lane " .. lane, "ready " .. first_rank .. " " .. ids[1] .. " ")
        members = {unpack(members, 3)}
    elseif not kind or kind ~= "waits" and first_rank < turn then
        redis.call("ZADD", parked, 0, "todo\nlane " .. lane)
    end
    if #members > 0 then redis.call("ZADD", parked, unpack(members)) end
end
