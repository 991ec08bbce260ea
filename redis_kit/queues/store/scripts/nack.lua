#!lua flags=allow-oom
-- Record a failed attempt: the job is ready again, scheduled, or dead when its attempts are used up.
-- One script: the failure, the next place and the result of a job change together or not at all.
--
-- @keys running, jobs, answers, workers, minutes, ready, scheduled, sequence, signal, dead, reasons, paused, result
-- @keys finished, unique, owners, lanes, parked, cancels
-- ARGV[1]   token      of the claim
-- ARGV[2]   id         of the job
-- ARGV[3]   lease      ms
-- ARGV[4]   delay      ms until the next attempt
-- ARGV[5]   attempts   how many a job has
-- ARGV[6]   reason     what went wrong
-- ARGV[7]   limit      how many dead jobs are kept
-- ARGV[8]   error      stored with the result; "" when no result is stored
-- ARGV[9]   ttl_ms     to store it
-- returns   1 ready, 2 scheduled, 3 dead, also when repeated; 6 when it is to be cancelled in place of another attempt: then
--           nothing was changed; 0 when the claim was lost

local error, ttl_ms = ARGV[8], ARGV[9]
local token, id, lease, delay, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local reason, dead_limit = ARGV[6], tonumber(ARGV[7])
local worker, member = string.match(token, "^[^/]*"), token .. "/" .. id
local READY, SCHEDULED, DEAD, CANCELLED = 1, 2, 3, 6
local clock = redis.call("TIME")
local now, first_field = clock[1] * 1000 + math.ceil(clock[2] / 1000), math.floor(clock[1] / 60) * 4

-- @include _record_head
-- @include _record
-- @include _history
-- @include _wake
-- @include _remember_answer
-- @include _sign_of_life
-- @include _count_minute
-- @include _begin_minute
-- @include _free_unique_key
-- @include _free_places
-- @include _bury_job
-- @include _store_result
local left, any_unique = (redis.call("ZSCORE", workers, worker) or 0) - now, has_unique_keys()
local signals = redis.call("LLEN", signal)
local record = redis.call("HGET", jobs, id)
local first = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
-- @check_types running, ready, dead, reasons, answers, minutes
local any_lanes = redis.call("EXISTS", lanes) == 1
if any_lanes then
    -- @check_types lanes, parked
end
-- A result whose key is of a wrong type is not stored, or the job would not end until that key is gone.
local waiting
if error ~= "" then
    local callers, list = redis.pcall("HGET", result, "waiting"), redis.pcall("LLEN", finished)
    error, waiting = type(callers) == "table" and "" or error, type(list) == "number" and callers
end

local is_cancelled = redis.call("HEXISTS", cancels, id) == 1 and redis.call("ZSCORE", running, member)
if is_cancelled and record and select(2, read_record(record)) < most then
    return CANCELLED
end
local last = redis.call("INCRBY", sequence, 1)
if redis.call("ZREM", running, member) == 0 then
    return earlier_answer(member) or 0
elseif not record then
    return 0
end
if count_minute(1, 1) == 1 then begin_minute() end
sign_of_life(left)
if any_lanes and free_places({id}, "last") > 0 then wake(signals) signals = 1 end
local begun = attempts_begun(record)
local priority, attempts, crashes, _, payload = read_record(record)
if attempts >= most then
    if is_cancelled then redis.call("HDEL", cancels, id) end
    bury_job(id, reason, any_unique)
    if error ~= "" then
        store_result(result, finished, ttl_ms, waiting, "FAILED", record, "error" .. begun, error)
    end
    return remember_answer(member, DEAD)
end
if error ~= "" then
    redis.call("HSET", result, "error" .. begun, error)
    redis.call("PEXPIRE", result, ttl_ms)
end
write_record(id, priority, attempts, crashes, now + delay, payload)
if delay == 0 then
-- @include _ready_place
    redis.call("ZADD", ready, any_lanes and ready_place(id, priority, last) or place_of(priority, last), id)
else
    redis.call("ZADD", scheduled, string.format("%.0f", now + delay), id)
end
if delay == 0 or not first or now + delay < tonumber(first) then
    wake(signals)
end
return remember_answer(member, delay == 0 and READY or SCHEDULED)
