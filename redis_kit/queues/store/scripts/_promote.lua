-- Make scheduled jobs ready whose time has come, at most 100. If some have lanes, there is a function for their place. Returns when the next one is due, and how many are ready.
-- needs  scheduled, ready, jobs, sequence, now, place_of, read_record
-- gives  promote
local function promote(ready_place)
    local due = redis.call("ZRANGEBYSCORE", scheduled, "-inf", now, "LIMIT", 0, 100)
    local records, last, places = redis.call("HMGET", jobs, unpack(due)), redis.call("INCRBY", sequence, #due), {}
    for at, id in ipairs(due) do
        local priority = read_record(records[at] or "")
        local turn = last - #due + at
        places[#places + 1] = ready_place and ready_place(id, priority, turn) or place_of(priority, turn)
        places[#places + 1] = id
    end
    if #places > 0 then redis.call("ZADD", ready, unpack(places)) end
    redis.call("ZREM", scheduled, unpack(due))
    return tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), redis.call("ZCARD", ready)
end
