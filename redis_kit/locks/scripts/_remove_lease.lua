-- Remove the token's lease, one of `count`. The index gets the end of the last remaining lease.
-- needs  token
-- gives  remove_lease
local function remove_lease(count, index, member, holders, about, weights, limits)
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
