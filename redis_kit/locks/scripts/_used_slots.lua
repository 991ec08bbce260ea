-- used_slots returns how many slots live leases use; at most 1000 leases that have ended; what the others weigh beyond one
-- each; and the live lease that ends first, with its end. "extra" among the holders is the sum of what all weigh beyond one
-- each. It is smaller than any end.
-- limit_in_force returns an operator's limit, else the smallest of those under which a slot is held; and the limit of the
-- lease that ends first, unless all limits are the given one. They are stored apart only if there are several.
-- `only_leases`: neither these nor an operator's limit are stored, if any lease is.
-- needs  now
-- gives  used_slots, limit_in_force
local function used_slots(holders)
    local first = redis.call("ZRANGE", holders, 0, 0, "WITHSCORES")
    if not first[1] then
        return 0, {}, 0, first
    elseif tonumber(first[2]) > now then
        return redis.call("ZCARD", holders), {}, 0, first
    end
    local extra = first[1] == "extra" and tonumber(first[2]) or 0
    local ended = redis.call("ZRANGEBYSCORE", holders, "(1000000", now, "LIMIT", 0, 1000)
    for _, slots in ipairs(ended) do
        extra = extra + 1 - (string.match(slots, " %d+ (%d+)$") or 1)
    end
    local live = "(" .. now
    first = redis.call("ZRANGEBYSCORE", holders, live, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    return redis.call("ZCOUNT", holders, live, "+inf") + extra, ended, extra, first
end

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
