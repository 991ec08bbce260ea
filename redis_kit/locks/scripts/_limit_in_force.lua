-- Return the limit in force: an operator's, else the smallest of those under which a slot is held; and the limit of one
-- of these leases, or nil. The limits are stored apart only if there are several.
-- needs  now
-- gives  limit_in_force
local function limit_in_force(holders, limits, stored, limit)
    local live = "(" .. now
    local first = redis.call("ZRANGEBYSCORE", holders, live, "+inf", "LIMIT", 0, 1)[1]
    local other = first and tonumber(string.match(first, "^%S+ (%d+)"))
    limit = math.min(limit, other or limit)
    for _, another in ipairs(redis.call("ZRANGEBYSCORE", limits, live, "+inf", "LIMIT", 0, 100)) do
        limit = math.min(limit, tonumber(another))
    end
    return tonumber(redis.call("GET", stored)) or limit, other
end
