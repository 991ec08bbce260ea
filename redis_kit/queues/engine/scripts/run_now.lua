#!lua flags=allow-oom
-- Make a scheduled job ready before its time. Its attempts stay counted.
--
-- @keys jobs, sequence, signal, paused
-- ARGV[1]  id
-- returns  1 when it is ready now, 0 if no job of this id was scheduled

local id = ARGV[1]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _move with any
local record = redis.call("HGET", jobs, id)
local signals = redis.call("LLEN", signal)
-- @check_types ready
-- @hook on_check
if not record or not redis.call("ZSCORE", scheduled, id) then
    return 0
end
local priority, attempts, crashes, _, payload = read_record(record)
local place = ready_place(id, priority, redis.call("INCRBY", sequence, 1))
move(id, "scheduled", "ready", {place = place, record = record_head(priority, attempts, crashes, now) .. payload})
wake(signals)
return 1
