-- Remove leases that have ended; the others weigh `extra` beyond one each.
-- needs  nothing
-- gives  remove_ended
local function remove_ended(ended, extra, holders, about, weights)
    redis.call("ZREM", holders, unpack(ended))
    redis.call("HDEL", about, unpack(ended))
    if extra > 0 then
        redis.call("HDEL", weights, unpack(ended))
        redis.call("HSET", weights, "extra", string.format("%.0f", extra))
    else
        redis.call("DEL", weights)
    end
end
