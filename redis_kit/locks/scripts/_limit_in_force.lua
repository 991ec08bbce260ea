-- Return the limit in force: an operator's, else the smallest of those under which a slot is held.
-- needs  live
-- gives  limit_in_force
local function limit_in_force(limits, stored, limit)
    for _, other in ipairs(redis.call("ZRANGEBYSCORE", limits, live, "+inf", "LIMIT", 0, 100)) do
        limit = math.min(limit, tonumber(other))
    end
    return tonumber(redis.call("GET", stored)) or limit
end
