#!lua
-- Make dead jobs ready, the oldest first, as if they were new.
--
-- KEYS[1]  dead      zset: id -> when it died, ms
-- KEYS[2]  reasons   hash: id -> why it died
-- KEYS[3]  jobs      hash: id -> record
-- KEYS[4]  ready     zset: id -> place
-- KEYS[5]  sequence  counter of jobs that got ready
-- KEYS[6]  signal    list: one element while a worker should look
-- ARGV[1]  limit     how many, at most
-- returns  how many left the dead ones

local dead, reasons, jobs, ready, sequence, signal = unpack(KEYS)
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record
-- @include _wake
local oldest = redis.call("ZRANGE", dead, 0, ARGV[1] - 1)
for _, key in ipairs({reasons, jobs}) do redis.call("HLEN", key) end
redis.call("ZCARD", ready)
redis.call("LLEN", signal)

local last = redis.call("INCRBY", sequence, #oldest)
for at, id in ipairs(oldest) do
    local record = redis.call("HGET", jobs, id)
    redis.call("ZREM", dead, id)
    redis.call("HDEL", reasons, id)
    if record then
        local priority, _, _, _, payload = read(record)
        write(id, priority, 0, 0, now, payload)
        redis.call("ZADD", ready, place(priority, last - #oldest + at), id)
        wake()
    end
end
return #oldest
