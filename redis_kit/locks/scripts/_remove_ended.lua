-- Remove leases that have ended, and all if no slot is in use; the live ones weigh `extra` beyond one each.
-- needs  nothing
-- gives  remove_ended
local function remove_ended(used, ended, extra, holders, limits)
    if used == 0 then
        redis.call("DEL", holders, limits)
    elseif #ended > 0 then
        redis.call("ZREM", holders, "extra", unpack(ended))
        if extra > 0 then
            redis.call("ZADD", holders, extra, "extra")
        end
    end
end
