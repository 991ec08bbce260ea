-- Return how many slots live leases use; at most 1000 leases that have ended, or nil; and what the others weigh beyond
-- one each. "extra" among the weights is that sum, with the leases that have ended until they are removed.
-- needs  now, live
-- gives  used_slots
local function used_slots(holders, weights)
    local count = redis.call("ZCARD", holders)
    if count == 0 then
        return 0
    end
    local used = redis.call("ZCOUNT", holders, live, "+inf")
    local extra = tonumber(redis.call("HGET", weights, "extra") or 0)
    local ended = count > used and redis.call("ZRANGEBYSCORE", holders, "-inf", now, "LIMIT", 0, 1000) or nil
    for _, weight in ipairs(ended and extra > 0 and redis.call("HMGET", weights, unpack(ended)) or {}) do
        extra = extra - (weight and weight - 1 or 0)
    end
    return used + extra, ended, extra
end
