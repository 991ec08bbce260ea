#!lua flags=allow-oom
-- Delete a job that no worker has.
--
-- @keys jobs, signal, paused
-- ARGV[1]  id
-- returns  1 when it was deleted; 0 when there is none, or it is running

local id = ARGV[1]

-- @include _wake
-- @include _record_head
-- @include _state_of
-- @include _move with any
local state = state_of(id)
-- @check_types ready, scheduled, dead, jobs, reasons, signal
-- @hook on_check
if state == "running" then
    return 0
end
if move(id, state, "gone", {}) then wake() end
return 1
