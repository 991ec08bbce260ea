-- Store slots of a lease on one level; true if it had none there. `held`: others have slots; `other` is the limit of one of
-- them, unless it is the same for all.
-- needs  weight, now, ends
-- gives  store_slots
local function store_slots(slots, held, other, limit, holders, limits)
    if other and (other ~= limit or redis.call("EXISTS", limits) == 1) then
        local last = tonumber(redis.call("ZRANGE", holders, -1, -1, "WITHSCORES")[2])
        redis.call("ZREMRANGEBYSCORE", limits, "-inf", now)
        redis.call("ZADD", limits, "NX", last, other)
        redis.call("ZADD", limits, "GT", ends, limit)
        redis.call("PEXPIREAT", limits, math.max(last, ends))
    end
    local added = redis.call("ZADD", holders, ends, slots) == 1
    if added and weight > 1 then
        redis.call("ZINCRBY", holders, weight - 1, "extra")
    end
    if held then
        redis.call("PEXPIREAT", holders, ends, "GT")
    else
        redis.call("PEXPIREAT", holders, ends)
    end
    return added
end
