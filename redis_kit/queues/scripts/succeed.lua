#!lua flags=allow-oom
-- End a job that is done, and keep its result.
--
-- KEYS[1]  running   zset of scores 0: worker/claim.number/place/id
-- KEYS[2]  jobs      hash: id -> record
-- KEYS[3]  settled   hash: worker -> its last answers
-- KEYS[4]  workers   zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[5]  minutes   hash: minute -> minute, jobs done, attempts failed
-- KEYS[6]  result    hash: what is known of the call
-- KEYS[7]  finished  list: an element for each who waits for the result
-- ARGV[1]  token     of the claim
-- ARGV[2]  id        of the job
-- ARGV[3]  lease     ms
-- ARGV[4]  value     what the task returned
-- ARGV[5]  keep      ms for which the result is kept
-- returns  4 when it is done, also when repeated; 0 when the claim had been lost

local running, jobs, settled, workers, minutes, result, finished = unpack(KEYS)
local token, id, lease, value, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local DONE = 4
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _settle
-- @include _count
-- @include _keep
local record = redis.call("HGET", jobs, id)
redis.call("HLEN", result)
redis.call("LLEN", finished)
if redis.call("ZREM", running, token .. "/" .. id) == 0 then
    return earlier() == DONE and DONE or 0
end
redis.call("HDEL", jobs, id)
count(1, 0)
redis.call("HSET", result, "value", value)
keep("SUCCESSFUL", record or "")
return settle(DONE)
