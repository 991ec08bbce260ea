#!lua flags=allow-oom
-- Return the jobs of a worker that died: those that it ran count a crash, the others are as if never claimed.
--
-- @keys signal, paused
-- ARGV[1]     worker
-- ARGV[2]     take     how many jobs to take in one call
-- ARGV[3]     crashes  that a job may have in which it was alone, until it is dead
-- ARGV[4]     limit    how many dead jobs are kept
-- ARGV[5]     beside   "" if it ran one job, else a line break, queue and id of each
-- ARGV[6...]  started  ids of the jobs that it ran
-- returns     how many were taken, as many as the limit when there may be more; how many results others are to store; then of
--             each dead one its id, why, and the first bytes of its body

local worker, take, most, dead_limit, beside = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _move with any, bury
-- @include _endings
-- @include _count_crash
-- @include _valid_place
-- @include _returned_record
-- @include _return_jobs
-- @check_types workers, running, ready, dead, info, jobs, reasons, signal, crashed
-- @hook on_check

local started, reply = {}, {0, 0}
for at = 6, #ARGV do
    started[ARGV[at]] = true
end
reply[1] = return_jobs(worker, take, function(id, record)
    if started[id] then return count_crash(reply, beside, id, record) end
    return uncounted(record)
end)
drop_oldest()
local unrecorded = 0
-- @hook on_report(unrecorded)
reply[2] = unrecorded
return reply
