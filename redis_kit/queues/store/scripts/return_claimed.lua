#!lua flags=allow-oom
-- Return claimed jobs that were not begun: they are ready again, in their old place, and the attempt does not count.
--
-- @keys running, jobs, ready, signal, paused, lanes, parked
-- ARGV[1...]  members  worker/claim/place/id of each
-- returns     how many were returned


-- @include _record_head
-- @include _record
-- @include _history
-- @include _wake
-- @include _valid_place
-- @include _free_places
-- @check_types running, ready, jobs, signal, lanes, parked

local returned = {}
for _, member in ipairs(ARGV) do
    local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
    local record = redis.call("ZREM", running, member) == 1 and id and redis.call("HGET", jobs, id)
    if record then
        local priority, attempts, crashes, due, payload = read_record(record)
        write_record(id, priority, math.max(0, attempts - 1), crashes, due, remove_attempt(payload))
        redis.call("ZADD", ready, valid_place(place), id)
        returned[#returned + 1] = id
    end
end
if #returned > 0 then
    free_places(returned)
    wake()
end
return #returned
