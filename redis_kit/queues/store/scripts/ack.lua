#!lua flags=allow-oom
-- Acknowledge jobs, and store their results, if any.
--
-- KEYS[1]     running  zset of scores 0: worker/claim.number/place/id
-- KEYS[2]     jobs     hash: id -> record
-- KEYS[3]     settled  hash: worker -> its last answers
-- KEYS[4]     workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[5]     minutes  hash: minute -> minute, jobs done, attempts failed, how late jobs began
-- KEYS[6]     unique   hash: unique key -> id
-- KEYS[7]     owners   hash: id -> until when it has a unique key, and that key
-- KEYS[8...]  results  of each job that has one: the hash of the result, and the list for callers that wait for it
-- ARGV[1]     worker
-- ARGV[2]     lease    ms
-- ARGV[3...]  acks     token of the claim, id, value or "", and the ms to store the value, of each job
-- returns     the numbers of those whose claim was lost, from 1

local running, jobs, settled, workers, minutes, unique, owners = unpack(KEYS)
local worker, lease = ARGV[1], tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _count_minute
-- @include _free_unique_key
-- @include _store_result
-- @include _ack_jobs
local minute, any_unique = read_minute(), has_unique_keys()
local ends = tonumber(redis.call("ZSCORE", workers, worker) or 0)
local lost, done_now = ack_jobs(worker, 3, 8, any_unique)
if done_now > 0 then
    count_minute(minute, done_now, 0, 0, 0, 0)
end
if ends - now < lease * 0.95 then
    redis.call("ZADD", workers, "XX", string.format("%.0f", now + lease), worker)
end
return lost
