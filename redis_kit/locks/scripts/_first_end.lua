-- Of the lease that ends first: ms until then, ms since it was taken, and what is stored about it.
local function first_end(holders, about)
    local first = redis.call("ZRANGEBYSCORE", holders, live, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    local stored = redis.call("HGET", about, first[1] or "") or ""
    return (first[2] or now + 1000) - now, now - (string.match(stored, "^%d+ (%d+)") or now), stored
end
