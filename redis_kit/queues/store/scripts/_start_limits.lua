-- Raise the counter beyond all ready jobs when the first limit is set, so that lanes that wait for a limit get later turns than
-- those that got a turn without limits.
-- needs  ready, sequence, limits
-- gives  start_limits
local function start_limits()
    if redis.call("EXISTS", limits) == 1 then return end
    local block, before = 2 ^ 44, redis.call("INCRBY", sequence, 0)
    local from, most = -101 * block, before
    for _ = 1, 201 do  -- priorities
        local head = redis.call("ZRANGEBYSCORE", ready, from, 101 * block, "WITHSCORES", "LIMIT", 0, 1)[2]
        if not head then break end
        local first = math.floor(head / block) * block
        from = first + block
        local last = redis.call("ZRANGE", ready, string.format("(%.0f", from), first, "BYSCORE", "REV", "LIMIT", 0, 1, "WITHSCORES")[2]
        most = math.max(most, math.ceil(last - first))
    end
    redis.call("INCRBY", sequence, most - before)
    redis.call("HSET", limits, "any", 1)
end
