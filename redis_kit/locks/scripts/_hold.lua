-- Notes a lease of the token, which may be the only one.
local function hold(alone, limit, index, member, holders, about, weights, limits)
    redis.call("HSET", about, token, fence .. " " .. now_text .. " " .. ttl .. " " .. weight .. " " .. who)
    if weight > 1 and redis.call("HSET", weights, token, weight) == 1 then
        redis.call("HINCRBY", weights, "extra", weight - 1)
    end
    if micros % 16 == 0 then  -- what dead holders left behind
        redis.call("ZREMRANGEBYSCORE", limits, "-inf", now)
        redis.call("ZREMRANGEBYSCORE", index, "-inf", now)
    end
    last_until(string.format("%.0f", now + ttl), alone, limit, index, member, holders, about, weights, limits)
end
