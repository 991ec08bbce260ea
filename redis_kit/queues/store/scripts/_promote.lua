-- Make scheduled jobs ready whose time has come, at most 100. Returns when the next one is due, and how many are ready.
-- needs  scheduled, ready, jobs, sequence, now, place_of, read_record
-- gives  promote
local function promote()
    local due = redis.call("ZRANGEBYSCORE", scheduled, "-inf", now, "LIMIT", 0, 100)
    local records, last, places = redis.call("HMGET", jobs, unpack(due)), redis.call("INCRBY", sequence, #due), {}
    for at, id in ipairs(due) do
        places[2 * at - 1], places[2 * at] = place_of(read_record(records[at] or ""), last - #due + at), id
    end
    redis.call("ZADD", ready, unpack(places))
    redis.call("ZREM", scheduled, unpack(due))
    return tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), redis.call("ZCARD", ready)
end
