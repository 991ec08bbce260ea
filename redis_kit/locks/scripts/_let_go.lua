-- Forgets the token's lease, one of `count`. The index keeps the end of the last lease that is left.
local function let_go(count, index, member, holders, about, weights, limits)
    if count == 1 then
        redis.call("DEL", holders, about, weights, limits)
        redis.call("ZREM", index, member)
        return
    end
    local weight = tonumber(redis.call("HGET", weights, token) or 1)
    if weight > 1 then
        redis.call("HDEL", weights, token)
        redis.call("HINCRBY", weights, "extra", 1 - weight)
    end
    redis.call("ZREM", holders, token)
    redis.call("HDEL", about, token)
    redis.call("ZADD", index, redis.call("ZRANGE", holders, -1, -1, "WITHSCORES")[2], member)
end
