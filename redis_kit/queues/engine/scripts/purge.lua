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
-- @include _move with any
local key = ({ready = ready, scheduled = scheduled, dead = dead})[state]
local ids = redis.call("ZRANGE", key, 0, limit - 1)
-- @check_types jobs, ready, scheduled, dead, reasons, signal
-- @hook on_check
-- @hook on_purge(state, limit, ids)

local wakes = false
for _, id in ipairs(ids) do wakes = move(id, state, "gone", {}) or wakes end
if wakes then wake() end
return #ids
