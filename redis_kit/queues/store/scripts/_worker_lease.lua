-- The lease of the calling worker, and the end of the next one of another worker. A worker that is new, or was silent
-- for half a lease, counts as alive from now on only: the server may have been unavailable, and no lease ends in a
-- shorter outage.
-- needs  workers, worker, info, information, now, lease
-- gives  lease_end, renew_lease, next_lease_end
local function lease_end()
    return tonumber(redis.call("ZSCORE", workers, worker) or 0)
end

local function renew_lease(ends, share)
    if ends - now < lease / 2 or ends % 1 > 0 then
        redis.call("HSET", info, worker, string.format("%.0f ", now) .. information)
    end
    -- A lease that ends later than it may is from before the clock went back.
    if ends - now <= lease * share or ends - now > lease or ends % 1 > 0 then
        redis.call("ZADD", workers, string.format("%.0f", now + lease), worker)
    end
end

-- In ms from now; -1 when there is no other worker.
local function next_lease_end()
    local first = redis.call("ZRANGE", workers, 0, 1, "WITHSCORES")
    local at = first[1] == worker and 4 or 2
    return first[at] and math.max(0, first[at] - now) or -1
end
