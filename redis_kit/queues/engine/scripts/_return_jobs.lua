-- Take jobs from a worker, at most `limit`, and make them ready in their old place. `change`, called with id and record, returns
-- the new record, and the reason if the job is dead instead. A feature may end it, too. A worker with no job left is
-- forgotten. Returns how many were taken.
-- @keys running, workers, info
-- needs  valid_place, wake, move, returned_record
-- gives  return_jobs
local function return_jobs(from, limit, change)
    local members = redis.call("ZRANGEBYLEX", running, "[" .. from .. "/", "(" .. from .. "0", "LIMIT", 0, limit)
    local wakes = false
    for _, member in ipairs(members) do
        local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
        local record, may_start = returned_record(id, member)
        wakes = may_start or wakes
        if record then
            local changed, reason = change(id, record)
            local how = {member = member, record = changed, place = valid_place(place), reason = reason}
            wakes = move(id, "running", reason and "dead" or "ready", how) or wakes
        end
    end
    if wakes then wake() end
    if #members < limit then
        redis.call("ZREM", workers, from)
        redis.call("HDEL", info, from)
    end
    return #members
end
