-- Remove leases that have ended; the others weigh `extra` beyond one each.
-- needs  nothing
-- gives  remove_ended
local function remove_ended(holders, ended, extra)
    if #ended > 0 then
        redis.call("ZREM", holders, "extra", unpack(ended))
        if extra > 0 then
            redis.call("ZADD", holders, extra, "extra")
        end
    end
end
