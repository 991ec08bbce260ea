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
-- @include _lanes with rules
-- @include _move with any, lanes
local key = ({ready = ready, scheduled = scheduled, dead = dead})[state]
local ids = redis.call("ZRANGE", key, 0, limit - 1)
-- @check_types jobs, ready, scheduled, dead, reasons, lanes, limits, parked, signal
-- @hook on_check
if state == "ready" and #ids < limit then
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", 0, limit - #ids)) do
        ids[#ids + 1] = string.match(member, "[^\n]*$")
    end
end

local wakes = false
for _, id in ipairs(ids) do wakes = move(id, state, "gone", {}) or wakes end
if wakes then wake() end
return #ids
