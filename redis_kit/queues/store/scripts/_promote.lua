-- Make scheduled jobs ready whose time has come, at most 100. Those with a lane do so in turn, if there is a function
-- for that. Returns when the next one is due, and how many are ready.
-- needs  scheduled, ready, jobs, sequence, now, place_of, read_record
-- gives  promote
local function promote(ready_in_turn)
    local due = redis.call("ZRANGEBYSCORE", scheduled, "-inf", now, "LIMIT", 0, 100)
    local records, last, places = redis.call("HMGET", jobs, unpack(due)), redis.call("INCRBY", sequence, #due), {}
    for at, id in ipairs(due) do
        local priority = read_record(records[at] or "")
        if not (ready_in_turn and ready_in_turn(id, priority)) then
            places[#places + 1], places[#places + 2] = place_of(priority, last - #due + at), id
        end
    end
    if #places > 0 then redis.call("ZADD", ready, unpack(places)) end
    redis.call("ZREM", scheduled, unpack(due))
    return tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), redis.call("ZCARD", ready)
end
