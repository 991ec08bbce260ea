-- Renew the lease of the calling worker. A worker that is new, or was silent for half a lease, counts as alive from now on
-- only: the server may have been unavailable, and no lease ends in a shorter outage.
-- needs  workers, worker, info, information, now, lease, answers
-- gives  renew_lease, next_lease_end
local function renew_lease(left)
    if left < lease / 2 or left % 1 > 0 then
        redis.call("HSET", info, worker, string.format("%.0f ", now) .. information)
    end
    redis.call("ZADD", workers, now + lease, worker)
    redis.call("PEXPIRE", answers, 3600 * 1000)
end

-- Return in how many ms the next lease of another worker ends, but for the first ones; -1 when there is no other worker.
local function next_lease_end(passed)
    local first = redis.call("ZRANGE", workers, passed, passed + 1, "WITHSCORES")
    local at = first[1] == worker and 4 or 2
    return first[at] and math.max(0, first[at] - now) or -1
end
