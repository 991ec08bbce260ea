-- Take jobs from a worker, at most `limit`, and make those ready in their old place for which `is_ready`, called with the
-- id and the parts of the record, returns true. A worker with no job left is forgotten. Returns how many were taken.
-- needs  running, jobs, ready, workers, info, read_record, valid_place, wake, free_places
-- gives  return_jobs
local function return_jobs(from, limit, is_ready)
    local members = redis.call("ZRANGEBYLEX", running, "[" .. from .. "/", "(" .. from .. "0", "LIMIT", 0, limit)
    local wakes = false
    for _, member in ipairs(members) do
        local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
        local record = id and redis.call("HGET", jobs, id)
        redis.call("ZREM", running, member)
        if record and free_places({id}) > 0 then wakes = true end
        if record and is_ready(id, read_record(record)) then
            redis.call("ZADD", ready, valid_place(place), id)
            wakes = true
        end
    end
    if wakes then wake() end
    if #members < limit then
        redis.call("ZREM", workers, from)
        redis.call("HDEL", info, from)
    end
    return #members
end
