-- Let the token wait on a level for some ms, or not at all, and no longer on the one before, whose wake-up is passed on.
-- needs  token, now
-- gives  wait_for_level
local function wait_for_level(waiters, waiting, before, signal)
    if before and before ~= waiters then
        redis.call("ZREM", before, token)
        if signal and redis.call("EXISTS", before) == 1 then
            redis.call("RPUSH", signal, "1")
            redis.call("PEXPIRE", signal, 1000)
        end
    end
    if waiting then
        redis.call("ZREMRANGEBYSCORE", waiters, "-inf", now)
        redis.call("ZADD", waiters, now + waiting, token)
        redis.call("PEXPIRE", waiters, waiting)
    elseif before then
        redis.call("ZREM", waiters, token)
    end
end
