-- Store a lease of the token, which may be the only one.
-- needs  token, fence, micros, now, now_text, ttl, weight, who, set_end
-- gives  store_lease
local function store_lease(alone, limit, index, member, holders, about, weights, limits)
    redis.call("HSET", about, token, fence .. " " .. now_text .. " " .. ttl .. " " .. weight .. " " .. who)
    if weight > 1 and redis.call("HSET", weights, token, weight) == 1 then
        redis.call("HINCRBY", weights, "extra", weight - 1)
    end
    if micros % 16 == 0 then  -- remove what dead holders left behind
        redis.call("ZREMRANGEBYSCORE", limits, "-inf", now)
        redis.call("ZREMRANGEBYSCORE", index, "-inf", now)
    end
    set_end(string.format("%.0f", now + ttl), alone, weight, limit, index, member, holders, about, weights, limits)
end
