#!lua flags=allow-oom
-- Delete jobs that no worker has: some by their ids, in any state or only in one, or the first ones of a state.
--
-- @keys jobs, ready, scheduled, dead, signal
-- ARGV[1]     state  ready, scheduled or dead; "" for any, if ids follow
-- ARGV[2]     limit  how many, at most, if no ids follow
-- ARGV[3...]  ids    of the jobs to delete
-- returns     how many were deleted

local state, limit, ids = ARGV[1], tonumber(ARGV[2]), {unpack(ARGV, 3)}

-- @include redis_kit.queues.engine:_wake
-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_state_of
-- @include redis_kit.queues.engine:_move with any
-- @check_types ready, scheduled, dead, jobs, reasons, signal
-- @hook on_check
if #ids == 0 then
    ids = redis.call("ZRANGE", ({ready = ready, scheduled = scheduled, dead = dead})[state], 0, limit - 1)
    -- @hook on_purge(state, limit, ids)
end
local deleted, wakes = 0, false
for _, id in ipairs(ids) do
    local from = #ARGV > 2 and state_of(id) or state
    if from ~= "running" and (from == state or state == "") then
        wakes, deleted = move(id, from, "gone", {}) or wakes, deleted + 1
    end
end
if wakes then wake() end
return deleted
