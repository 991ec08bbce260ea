#!lua flags=allow-oom
-- Delete jobs of one state that no worker has, from the first on.
--
-- @keys jobs, ready, scheduled, dead, reasons, unique, owners, signal, paused, lanes, limits, parked
-- ARGV[1]   state      ready, scheduled or dead
-- ARGV[2]   limit      how many, at most
-- returns   how many were deleted

local key = ({ready = ready, scheduled = scheduled, dead = dead})[ARGV[1]]

-- @include _free_unique_key
-- @include _wake
-- @include _leave_lane
local any_unique = has_unique_keys()
local ids = redis.call("ZRANGE", key, 0, ARGV[2] - 1)
-- @check_types jobs, reasons, lanes, limits, parked, signal
if key == ready and #ids < tonumber(ARGV[2]) then
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", 0, ARGV[2] - #ids)) do
        ids[#ids + 1] = string.match(member, "[^\n]*$")
    end
end

if #ids > 0 then
    redis.call("ZREM", key, unpack(ids))
    redis.call("HDEL", jobs, unpack(ids))
    redis.call("HDEL", reasons, unpack(ids))
    local any_lanes, noted = redis.call("EXISTS", lanes) == 1, false
    for _, id in ipairs(ids) do
        free_unique_key(id, any_unique)
        noted = any_lanes and leave_lane(id) or noted
    end
    if noted then wake() end
end
return #ids
