-- Look at a job that is to go back from its worker. Returns its record, nil if it is gone: it has none, or a feature ended it.
-- And whether others may start now.
-- @keys running, jobs
-- needs  move, note_ending
-- gives  returned_record
local function returned_record(id, member)
    local record, wakes, has_ended = id and redis.call("HGET", jobs, id), false, false
    if not record then
        redis.call("ZREM", running, member)
        return nil, false
    end
    -- @hook on_return(id, member, record, wakes, has_ended, note_ending, move)
    return not has_ended and record or nil, wakes
end
