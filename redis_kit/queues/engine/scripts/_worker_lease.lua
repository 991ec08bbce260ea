-- Renew the lease of the calling worker. A worker that is new, or was silent for half a lease, counts as alive from now on
-- only: the server may have been unavailable, and no lease ends in a shorter outage.
-- needs  workers, worker, info, information, now, lease, answers
-- gives  renew_lease
local function renew_lease(left)
    if left < lease / 2 or left % 1 > 0 then
        redis.call("HSET", info, worker, string.format("%.0f ", now) .. information)
    end
    redis.call("ZADD", workers, now + lease, worker)
    redis.call("PEXPIRE", answers, 3600 * 1000)
end
