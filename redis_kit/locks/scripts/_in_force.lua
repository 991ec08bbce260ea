-- The limit that counts: an operator's, else the smallest of those under which a slot is held.
local function in_force(limits, stored, limit)
    for _, other in ipairs(redis.call("ZRANGEBYSCORE", limits, live, "+inf", "LIMIT", 0, 100)) do
        limit = math.min(limit, tonumber(other))
    end
    return tonumber(redis.call("GET", stored)) or limit
end
