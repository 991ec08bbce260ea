#!lua flags=allow-oom
-- Sign a worker off: its jobs are ready again, in their old place, and the attempt does not count. They are due now: no
-- worker was late while they ran.
--
-- KEYS[1]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  info     hash: worker -> since when it is alive, ms, and what it reports about itself
-- KEYS[3]  running  zset of scores 0: worker/claim/place/id
-- KEYS[4]  jobs     hash: id -> record
-- KEYS[5]  ready    zset: id -> place
-- KEYS[6]  signal   list: one element while a worker is to wake up
-- KEYS[7]  answers  list: the last answers to the worker
-- KEYS[8]  paused   string  the queue is paused while it exists: since when, ms
-- KEYS[9]  lanes    hash: id -> its rank in its lane, and that
-- KEYS[10]  parked   zset of scores 0: what waits for a limit
-- KEYS[11]  lost     hash: worker -> when it was lost, ms, its jobs, pid, its supervisor's pid, host
-- ARGV[1]  worker
-- ARGV[2]  limit    how many jobs to return in one call
-- returns  how many were returned; as many as the limit when there may be more

local workers, info, running, jobs, ready, signal, answers, paused, lanes, parked, lost = unpack(KEYS)
local worker, limit = ARGV[1], tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _history
-- @include _wake
-- @include _valid_place
-- @include _free_places
-- @include _return_jobs
-- @check_types workers, running, ready, info, jobs, answers, signal, lanes, parked, lost

local count = return_jobs(worker, limit, function(id, priority, attempts, crashes, _, payload)
    return write_record(id, priority, math.max(0, attempts - 1), crashes, now, remove_attempt(payload))
end)
if count < limit then
    redis.call("DEL", answers)
    redis.call("HDEL", lost, worker)  -- it came back before
end
return count
