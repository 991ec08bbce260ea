-- Give a job that is claimed by its id the places in its limits; the next claim looks at its lane.
-- needs  lanes, parked
-- gives  hold_places
local function hold_places(id)
    local lane = string.match(redis.call("HGET", lanes, id) or "", "^%S+ (.*)$")
    for name in string.gmatch(lane or "", "%S+") do
        redis.call("ZADD", parked, 0, "run\n" .. name .. "\n" .. id)
    end
    if lane then redis.call("ZADD", parked, 0, "todo\nlane " .. lane) end
end
