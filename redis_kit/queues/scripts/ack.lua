#!lua flags=allow-oom
-- End a job that is done.
--
-- KEYS[1]  running  zset of scores 0: worker/claim.number/place/id
-- KEYS[2]  jobs     hash: id -> record
-- KEYS[3]  settled  hash: worker -> its last answers
-- KEYS[4]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[5]  minutes  hash: minute -> minute, jobs done, attempts failed
-- ARGV[1]  token    of the claim
-- ARGV[2]  id       of the job
-- ARGV[3]  lease    ms
-- returns  4 when it is done, also when repeated; 0 when the claim had been lost

local running, jobs, settled, workers, minutes = unpack(KEYS)
local token, id, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local DONE = 4
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _settle
-- @include _count
redis.call("HLEN", jobs)
if redis.call("ZREM", running, token .. "/" .. id) == 0 then
    return earlier() == DONE and DONE or 0
end
redis.call("HDEL", jobs, id)
count(1, 0)
return settle(DONE)
