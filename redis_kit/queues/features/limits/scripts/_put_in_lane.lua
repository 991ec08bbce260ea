-- Put new jobs into a lane, ready; without a priority, as for jobs of later, only note in which lane they are. `text` has a line
-- for the lane, and two for each of its limits that the caller knows: its name, and what the code allows, - for nothing.
-- @keys limits, parked, sequence
-- needs  lanes, ready, next_places, rank_of, use_feature
-- gives  put_in_lane
local function note_rules(lines)
    for at = 2, #lines, 2 do
        local field, allowed = "code " .. lines[at], lines[at + 1]
        if (redis.call("HGET", limits, field) or "-") ~= allowed then
            use_feature(64)
            redis.call("ZADD", parked, 0, "rule\n" .. lines[at], 0, "todo\nfrom ")
            if allowed == "-" then redis.call("HDEL", limits, field) else redis.call("HSET", limits, field, allowed) end
        end
    end
end

local function put_in_lane(text, ids, priority)
    local lines, of_ids, places = {}, {}, {}
    for line in string.gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    local lane = lines[1]
    use_feature(1)
    note_rules(lines)
    local waits = string.find(redis.call("HGET", limits, "lane " .. lane) or "", "^%d")
    local place = priority and next_places(lane, priority, #ids, redis.call("INCRBY", sequence, #ids))
    for at, id in ipairs(ids) do
        local rank = place and rank_of(place) or "-"
        of_ids[2 * at - 1], of_ids[2 * at] = id, rank .. " " .. lane
        if place then
            places[2 * at - 1] = waits and 0 or string.format("%.0f", place)
            places[2 * at] = waits and "job\n" .. lane .. "\n" .. rank .. "\n" .. id or id
            place = place + 16
        end
    end
    redis.call("HSET", lanes, unpack(of_ids))
    if place then redis.call("ZADD", waits and parked or ready, unpack(places)) end
end
