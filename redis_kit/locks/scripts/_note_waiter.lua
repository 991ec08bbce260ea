-- Note in the bucket's index for how many ms a caller waits for a name, so that a page finds the names with waiters
-- without a look at all others. The scores of these entries are later than any lease ends, and before the fence.
-- needs  now, micros
-- gives  note_waiter
local function note_waiter(live, member, waiting)
    if micros % 16 == 0 then -- remove those whose callers wait no longer
        redis.call("ZREMRANGEBYSCORE", live, 1e14, 1e14 + now)
    end
    redis.call("ZADD", live, "GT", 1e14 + now + waiting, "waits " .. member)
end
