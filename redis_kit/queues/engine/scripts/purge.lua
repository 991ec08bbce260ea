#!lua flags=allow-oom
-- Delete jobs of one state that no worker has, from the first on.
--
-- @keys jobs, signal, paused
-- ARGV[1]  state  ready, scheduled or dead
-- ARGV[2]  limit  how many, at most
-- returns  how many were deleted

local state, limit = ARGV[1], tonumber(ARGV[2])

-- @include _wake
-- @include _record_head
-- @include _lanes
-- @include _state_of
-- @include _move with any, lanes, unique, marks
local key = ({ready = ready, scheduled = scheduled, dead = dead})[state]
local ids = redis.call("ZRANGE", key, 0, limit - 1)
-- @check_types jobs, ready, scheduled, dead, reasons, lanes, limits, parked, signal, unique, owners, cancels
if state == "ready" and #ids < limit then
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\12", "LIMIT", 0, limit - #ids)) do
        ids[#ids + 1] = string.match(member, "[^\n]*$")
    end
elseif state == "scheduled" then  -- after some that are ready, though they are there
    local parked_there = math.min(5000, redis.call("ZLEXCOUNT", parked, "[job\11", "(job\12"))
    ids = redis.call("ZRANGE", key, 0, limit + parked_there - 1)
end

local count, wakes = 0, false
for _, id in ipairs(ids) do
    if count < limit and (state ~= "scheduled" or not is_parked(id)) then
        wakes = move(id, state, "gone", {}) or wakes
        count = count + 1
    end
end
if wakes then wake() end
return count
