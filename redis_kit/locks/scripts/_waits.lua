-- Note that a caller has waited, until it got its lease or gave up: for the list of the names with the longest waits of one
-- day, and for the history. Short waits are frequent, so each sixteenth of them stands for all; the fence decides which one.
-- needs  nothing
-- gives  note_wait
local function note_wait(waited, waits, member, ms, fence, gave_up)
    local sixteenth = fence % 16 == 0
    local share = ms < 50 and 16 or 1
    if share == 16 and not sixteenth then
        return
    end
    ms = math.min(math.max(ms, 0), 86400000)
    redis.call("ZINCRBY", waited, ms * share, member)
    redis.call("ZINCRBY", waits, share, member)
    redis.call("EXPIRE", waited, 86400, "NX")
    redis.call("EXPIRE", waits, 86400, "NX")
    if sixteenth then
        redis.call("ZREMRANGEBYRANK", waited, 0, -201)
        redis.call("ZREMRANGEBYRANK", waits, 0, -201)
    end
-- @include _statistics
    count_in_history(waited, share, ms * share, ms, gave_up and share or 0, 0)
end
