#!lua flags=allow-oom
-- Return a job whose call this worker can't run, for other workers. The delay grows, and no attempt is counted.
-- One script: the claim must hold from the first look to the new place of the job.
--
-- @keys running, jobs, answers, workers, scheduled, signal, paused, cancels, unknown, lanes, parked, deferred
-- ARGV[1]   token      of the claim
-- ARGV[2]   id         of the job
-- ARGV[3]   lease      ms
-- ARGV[4]   digest     of the shape
-- ARGV[5]   shape      task, number of arguments and names of others
-- ARGV[6]   expires    ms beyond its time in which the job must begin, 0 for ever
-- ARGV[7]   longest    ms for which it is returned again and again
-- ARGV[8]   most       how many shapes are kept
-- returns   2 returned, also when repeated; 5 when its time for that is over, 6 when it is to be cancelled: then nothing
--           was changed; 0 when the claim was lost
--
-- The time between two tries grows with the time since the first one, and with the number of jobs of the shape. So workers
-- look at 50 of them a second, or, as a job waits for at most 10 minutes, at each once in 10 minutes.

local token, id, lease, digest, shape = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local worker, member = string.match(token, "^[^/]*"), token .. "/" .. id
local expires, longest, most = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local RETURNED, EXHAUSTED, CANCELLED = 2, 5, 6
local FIRST, LONGEST, EACH = 2000, 600000, 20  -- ms
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _history
-- @include _remember_answer
-- @include _sign_of_life
-- @include _wake
-- @include _unknown_calls
-- @include _free_places
local left = (redis.call("ZSCORE", workers, worker) or 0) - now
local record = redis.call("HGET", jobs, id)
local first = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
-- @include _return_for_later
-- @check_types cancels, unknown, signal, answers, lanes, parked
if not redis.call("ZSCORE", running, member) then
    return earlier_answer(member) == RETURNED and RETURNED or 0
elseif not record then
    return 0
end
local due = select(4, read_record(record))
-- A job of the same id that was due at another time was another job.
local before = id .. "/" .. string.format("%.0f", due)
local since = tonumber(redis.call("ZSCORE", deferred, before)) or clock[1] * 1000 + clock[2] / 1000
if redis.call("HEXISTS", cancels, id) == 1 then
    return CANCELLED
elseif now - since >= longest then
    return EXHAUSTED
end

redis.call("ZREM", deferred, before)
local at = now + math.min(LONGEST, math.max(FIRST, now - since, EACH * redis.call("ZCARD", deferred)))
if expires > 0 then
    at = math.min(at, math.max(now + FIRST, due + expires + 1))  -- so that its expiry is soon seen
else
    due = at
end
redis.call("ZADD", deferred, string.format("%.3f", since), id .. "/" .. string.format("%.0f", due))
local stored, _, _, known = read_unknown(digest)
if stored or redis.call("HLEN", unknown) < most then
    write_unknown(digest, known or 0, shape)
end
for _, key in ipairs({unknown, deferred}) do redis.call("PEXPIRE", key, string.format("%.0f", longest + 2 * LONGEST)) end
return return_for_later(record, at, due, "last")
