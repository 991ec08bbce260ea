#!lua flags=allow-oom
-- Delete a job that no worker has.
--
-- @keys jobs, ready, scheduled, dead, reasons, unique, owners, signal, paused, lanes, limits, parked
-- ARGV[1]   id
-- returns   1 when it was deleted; 0 when there is none, or it is running

local id = ARGV[1]

-- @include _free_unique_key
-- @include _wake
-- @include _leave_lane
local any_unique = has_unique_keys()
-- @check_types ready, scheduled, dead, jobs, reasons, lanes, limits, parked, signal

local removed = waits_in_lane(id) and 1 or 0
for _, key in ipairs({ready, scheduled, dead}) do
    removed = removed + redis.call("ZREM", key, id)
end
if removed > 0 then
    redis.call("HDEL", jobs, id)
    redis.call("HDEL", reasons, id)
    if leave_lane(id) then wake() end
    free_unique_key(id, any_unique)
    return 1
end
return 0
