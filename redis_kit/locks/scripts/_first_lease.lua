-- Return of the lease that ends first: ms until then, ms since it was acquired, and the text stored about it.
-- needs  now, live
-- gives  first_lease
local function first_lease(holders, about)
    local first = redis.call("ZRANGEBYSCORE", holders, live, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    local stored = redis.call("HGET", about, first[1] or "") or ""
    return (first[2] or now + 1000) - now, now - (string.match(stored, "^%d+ (%d+)") or now), stored
end
