#!lua flags=allow-oom
-- Return a running job whose task asked to run later. No attempt is counted.
-- One script: the claim must hold from the first look to the new place of the job.
--
-- @keys running, jobs, answers, workers, scheduled, signal, paused, cancels, result, lanes, parked
-- ARGV[1]  token      of the claim
-- ARGV[2]  id         of the job
-- ARGV[3]  lease      ms
-- ARGV[4]  delay      ms until it runs again
-- ARGV[5]  expires    ms beyond its time in which the job must begin, 0 for ever
-- ARGV[6]  why        what the task said
-- ARGV[7]  ttl_ms     to store how often, when and why it snoozed; 0 if no result is stored
-- returns  2 returned, also when repeated; 6 when it is to be cancelled: then nothing was changed; 0 when the claim was lost

local token, id, lease, delay, expires = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local worker, member = string.match(token, "^[^/]*"), token .. "/" .. id
local CANCELLED = 6
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
-- @check_types cancels, signal, answers, lanes, parked
if not redis.call("ZSCORE", running, member) then
    return earlier_answer(member) or 0
elseif not record then
    return 0
elseif redis.call("HEXISTS", cancels, id) == 1 then
    return CANCELLED
end

local at, due = now + delay, select(4, read_record(record))
if expires > 0 then
    at = math.max(now, math.min(at, due + expires + 1))  -- so that its expiry is soon seen
    due = due + 1  -- claim_job can tell a message about this run from one about the next
else
    due = at
end
if ARGV[7] ~= "0" then
    local before = redis.pcall("HGET", result, "snoozed")
    if type(before) ~= "table" then
        local count = (tonumber(string.match(before or "", "^%d+")) or 0) + 1
        redis.call("HSET", result, "snoozed", string.format("%.0f %.0f ", count, now) .. ARGV[6])
        redis.call("PEXPIRE", result, ARGV[7])
    end
end
return return_for_later(record, at, due, "last")
