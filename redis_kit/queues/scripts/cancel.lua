#!lua flags=allow-oom
-- Cancel a job that waits, and keep that as its result.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  result     hash: what is known of the call
-- KEYS[5]  finished   list: an element for each who waits for the result
-- KEYS[6]  unique     hash: unique key -> id
-- KEYS[7]  owners     hash: id -> until when it has a unique key, and that key
-- ARGV[1]  id         of the job
-- ARGV[2]  error      what the result is to tell
-- ARGV[3]  keep       ms for which it is kept
-- returns  1 when it was cancelled, 0 when it does not wait

local jobs, ready, scheduled, result, finished, unique, owners = unpack(KEYS)
local id, error, ttl = ARGV[1], ARGV[2], ARGV[3]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _keep
-- @include _free
local record = redis.call("HGET", jobs, id)
redis.call("HLEN", result)
redis.call("LLEN", finished)
redis.call("ZCARD", scheduled)
if not record or redis.call("ZREM", ready, id) + redis.call("ZREM", scheduled, id) == 0 then
    return 0
end
redis.call("HDEL", jobs, id)
free(id)
redis.call("HSET", result, "cancelled", error)
keep("FAILED", record)
return 1
