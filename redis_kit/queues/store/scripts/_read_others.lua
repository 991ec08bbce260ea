-- Read what most queues have none of, `others` of five keys: return when the next scheduled job is due, the ms to the end of
-- a pause (-1: none, -2: no pause), whether there are unique keys, whether the call was repeated, and whether jobs have
-- lanes.
-- needs  scheduled, paused, owners, repeats, lanes, owner
-- gives  read_others
local function read_others(others)
    local coming = tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2])
    if others == 1 and coming then
        return coming, -2, false, false, false
    end
    local any_lanes = redis.call("HLEN", lanes) > 0
    if any_lanes and others == (coming and 2 or 1) then
        return coming, -2, false, false, true
    end
    local any_unique = redis.call("HLEN", owners) > 0
    return coming, redis.call("PTTL", paused), any_unique, redis.call("ZSCORE", repeats, owner), any_lanes
end
