#!lua flags=allow-oom
-- Sign a worker off: its jobs are ready again, in their old place, and the attempt does not count. They are due now: no
-- worker was late while they ran.
--
-- @keys signal, answers, paused, lost
-- ARGV[1]  worker
-- ARGV[2]  limit    how many jobs to return in one call
-- returns  how many were returned, as many as the limit when there may be more; and how many results others are to store

local worker, limit = ARGV[1], tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _valid_place
-- @include _move with any
-- @include _endings
-- @include _returned_record
-- @include _return_jobs
-- @check_types workers, running, ready, info, jobs, answers, signal, lost
-- @hook on_check

local count = return_jobs(worker, limit, function(_, record) return uncounted(record, now) end)
if count < limit then
    redis.call("DEL", answers)
    redis.call("HDEL", lost, worker)  -- it came back before
end
local unrecorded = 0
-- @hook on_report(unrecorded)
return {count, unrecorded}
