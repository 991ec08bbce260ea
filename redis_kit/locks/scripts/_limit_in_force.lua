-- Return the limit in force: an operator's, else the smallest of those under which a slot is held; and the limit of the
-- lease that ends first, unless all limits are the given one. They are stored apart only if there are several.
-- `only_leases`: neither these nor an operator's limit are stored, if any lease is.
-- needs  now
-- gives  limit_in_force
local function limit_in_force(first, only_leases, limits, stored, limit)
    local other = first[1] and tonumber(string.match(first[1], "^%S+ (%d+)"))
    local least = math.min(limit, other or limit)
    if only_leases and other then
        return least, other ~= limit and other or nil
    end
    for _, another in ipairs(redis.call("ZRANGEBYSCORE", limits, "(" .. now, "+inf", "LIMIT", 0, 100)) do
        least = math.min(least, other and tonumber(another) or least)
    end
    return tonumber(redis.call("GET", stored)) or least, other
end
