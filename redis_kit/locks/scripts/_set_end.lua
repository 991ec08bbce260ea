-- Set when the token's lease ends. Its keys, and its entry in the index, end with the last lease.
-- needs  token
-- gives  set_end
local function set_end(ends, alone, weight, limit, index, member, holders, about, weights, limits)
    redis.call("ZADD", limits, "GT", ends, limit)
    redis.call("ZADD", holders, ends, token)
    local last = alone and ends or redis.call("ZRANGE", holders, -1, -1, "WITHSCORES")[2]
    redis.call("PEXPIREAT", holders, last)
    redis.call("PEXPIREAT", about, last)
    redis.call("PEXPIREAT", limits, last)
    redis.call("ZADD", index, last, member)
    if not alone or weight > 1 then
        redis.call("PEXPIREAT", weights, last)
    end
end
