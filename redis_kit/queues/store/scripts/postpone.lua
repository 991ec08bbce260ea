#!lua flags=allow-oom
-- Return a claimed job to its queue for later. The attempt does not count, and it is due, and expires, as before.
-- One script: the claim must hold from the first look to the new place of the job.
--
-- @keys running, jobs, answers, workers, scheduled, signal, paused, lanes, parked
-- ARGV[1]  token      of the claim
-- ARGV[2]  id         of the job
-- ARGV[3]  lease      ms
-- ARGV[4]  delay      ms until it is claimed again
-- ARGV[5]  holds      1 if another system has it, so it keeps its places in its limits; 0 if it frees them
-- returns  2 when it is scheduled, also when repeated; 0 when the claim was lost

local token, id, lease, delay, holds = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == "1"
local worker, member = string.match(token, "^[^/]*"), token .. "/" .. id
local RETURNED = 2
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _history
-- @include _remember_answer
-- @include _sign_of_life
-- @include _wake
-- @include _free_places
local left = (redis.call("ZSCORE", workers, worker) or 0) - now
local record = redis.call("HGET", jobs, id)
local first = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
-- @include _return_for_later
-- @check_types signal, answers, lanes, parked
if not redis.call("ZSCORE", running, member) then
    return earlier_answer(member) == RETURNED and RETURNED or 0
elseif not record then
    return 0
end
return return_for_later(record, now + delay, select(4, read_record(record)), holds and "away" or "last")
