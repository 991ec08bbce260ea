-- Return how many slots live leases use; at most 1000 leases that have ended; and what the others weigh beyond one each.
-- "extra" among the holders is that sum, for all leases that are stored. It is smaller than any end.
-- needs  now
-- gives  used_slots
local function used_slots(holders)
    local first = redis.call("ZRANGE", holders, 0, 0, "WITHSCORES")
    local extra = first[1] == "extra" and tonumber(first[2]) or 0
    local ended = redis.call("ZRANGEBYSCORE", holders, "(1000000", now, "LIMIT", 0, 1000)
    for _, slots in ipairs(ended) do
        extra = extra + 1 - (string.match(slots, " %d+ (%d+)$") or 1)
    end
    return redis.call("ZCOUNT", holders, "(" .. now, "+inf") + extra, ended, extra
end
