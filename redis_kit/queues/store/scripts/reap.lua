#!lua flags=allow-oom
-- Return the jobs of a worker that died: those that it ran count a crash, the others are as if never claimed.
--
-- KEYS[1]     workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]     info     hash: worker -> since when it is alive, ms, and what it reports about itself
-- KEYS[3]     running  zset of scores 0: worker/claim/place/id
-- KEYS[4]     jobs     hash: id -> record
-- KEYS[5]     ready    zset: id -> place
-- KEYS[6]     signal   list: one element while a worker is to wake up
-- KEYS[7]     paused   string  the queue is paused while it exists: since when, ms
-- KEYS[8]     dead     zset: id -> when it died, ms
-- KEYS[9]     reasons  hash: id -> why it died
-- KEYS[10]    unique   hash: unique key -> id
-- KEYS[11]    owners   hash: id -> until when it has a unique key, and that key
-- KEYS[12]    lanes    hash: id -> its rank in its lane, and that
-- KEYS[13]    parked   zset of scores 0: what waits for a limit
-- KEYS[14]    crashed  hash: id -> in how many crashes it was alone, and a line for each job that ran in another one
-- ARGV[1]     worker
-- ARGV[2]     take     how many jobs to take in one call
-- ARGV[3]     crashes  that a job may have in which it was alone, until it is dead
-- ARGV[4]     limit    how many dead jobs are kept
-- ARGV[5]     beside   "" if it ran one job, else a line break, queue and id of each
-- ARGV[6...]  started  ids of the jobs that it ran
-- returns     how many were taken, as many as the limit when there may be more; then of each dead one its
--             id, why, and the first bytes of its body

local workers, info, running, jobs, ready, signal, paused, dead, reasons, unique, owners, lanes, parked, crashed = unpack(KEYS)
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
