#!lua flags=allow-oom
-- Return the jobs of a worker that died: those that it ran count a crash, the others are as if never claimed.
--
-- @keys workers, info, running, jobs, ready, signal, paused, dead, reasons, unique, owners, lanes, parked, crashed
-- ARGV[1]     worker
-- ARGV[2]     take     how many jobs to take in one call
-- ARGV[3]     crashes  that a job may have in which it was alone, until it is dead
-- ARGV[4]     limit    how many dead jobs are kept
-- ARGV[5]     beside   "" if it ran one job, else a line break, queue and id of each
-- ARGV[6...]  started  ids of the jobs that it ran
-- returns     how many were taken, as many as the limit when there may be more; then of each dead one its
--             id, why, and the first bytes of its body

local worker, take, most, dead_limit, beside = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _history
-- @include _wake
-- @include _free_unique_key
-- @include _bury_job
local any_unique = has_unique_keys()
-- @include _count_crash
-- @include _valid_place
-- @include _free_places
-- @include _return_jobs
-- @check_types workers, running, ready, dead, info, jobs, reasons, signal, lanes, parked, crashed

local started, reply = {}, {0}
for at = 6, #ARGV do
    started[ARGV[at]] = true
end
reply[1] = return_jobs(worker, take, function(id, priority, attempts, crashes, due, payload)
    if not started[id] then
        return write_record(id, priority, math.max(0, attempts - 1), crashes, due, remove_attempt(payload))
    end
    return count_crash(reply, beside, id, priority, attempts, crashes, payload)
end)
return reply
