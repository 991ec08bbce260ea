-- Have new jobs wait in a lane, in this order from `place` on, and note the lane for the next claim unless an earlier job of it
-- is ready. Without a place, as for jobs of later, only note in which lane they are. `text` has a line for the lane, and two
-- for each of its limits that the caller knows: its name, and what the code allows, - for nothing.
-- needs  lanes, limits, parked
-- gives  put_in_lane
local function put_in_lane(text, ids, place)
    local lines, members, of_ids, first = {}, {}, {}, nil
    for line in string.gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    local lane = lines[1]
    for at, id in ipairs(ids) do
        local rank = place and string.format("%016.0f", 2 ^ 51 + place + at - 1) or "-"
        first, members[2 * at - 1], members[2 * at] = first or rank, 0, "job\n" .. lane .. "\n" .. rank .. "\n" .. id
        of_ids[2 * at - 1], of_ids[2 * at] = id, rank .. " " .. lane
    end
    redis.call("HSET", lanes, unpack(of_ids))
    if place then
        local kind, head = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+)")
        redis.call("ZADD", parked, unpack(members))
        if not kind or kind ~= "waits" and first < head then
            redis.call("ZADD", parked, 0, "todo\nlane " .. lane)
        end
    end
    for at = 2, #lines, 2 do
        local field, allowed = "code " .. lines[at], lines[at + 1]
        if (redis.call("HGET", limits, field) or "-") ~= allowed then
            if allowed == "-" then redis.call("HDEL", limits, field) else redis.call("HSET", limits, field, allowed) end
            redis.call("ZADD", parked, 0, "rule\n" .. lines[at])
            redis.call("ZADD", parked, 0, "todo\nfrom ")
        end
    end
end
