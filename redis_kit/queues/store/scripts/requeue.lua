#!lua
-- Make dead jobs ready as if they were new: the oldest first, or some by their ids. One that had a unique key has it
-- again unless another job took it.
--
-- KEYS[1]     dead      zset: id -> when it died, ms
-- KEYS[2]     reasons   hash: id -> why it died
-- KEYS[3]     jobs      hash: id -> record
-- KEYS[4]     ready     zset: id -> place
-- KEYS[5]     sequence  counter of jobs that got ready
-- KEYS[6]     signal    list: one element while a worker should look
-- KEYS[7]     paused    the queue is paused while it exists: since when, ms
-- KEYS[8]     unique    hash: unique key -> id
-- KEYS[9]     owners    hash: id -> until when it has a unique key, and that key
-- KEYS[10]    cancels   hash: id -> 1, of jobs that run and are not to
-- ARGV[1]     limit     how many, at most, where no ids follow
-- ARGV[2...]  ids       of those that are meant
-- returns     how many left the dead ones

local dead, reasons, jobs, ready, sequence, signal, paused, unique, owners, cancels = unpack(KEYS)
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record
-- @include _place
-- @include _wake
-- @include _held
redis.call("ZCARD", dead)
local chosen = #ARGV > 1 and {unpack(ARGV, 2)} or redis.call("ZRANGE", dead, 0, ARGV[1] - 1)
for _, key in ipairs({reasons, jobs, unique, owners, cancels}) do redis.call("HLEN", key) end
redis.call("ZCARD", ready)
redis.call("LLEN", signal)

local moved, last = 0, redis.call("INCRBY", sequence, #chosen)
for at, id in ipairs(chosen) do
    if redis.call("ZREM", dead, id) == 1 then
        moved = moved + 1
        redis.call("HDEL", reasons, id)
        redis.call("HDEL", cancels, id)
        local record = redis.call("HGET", jobs, id)
        if record then
            local priority, _, _, _, payload = read(record)
            write(id, priority, 0, 0, now, payload)
            redis.call("ZADD", ready, place(priority, last - #chosen + at), id)
            local key = string.match(redis.call("HGET", owners, id) or "", "^%l+ (.*)$")
            if key and not held(key) then
                redis.call("HSET", unique, key, id)
            end
            wake()
        end
    end
end
return moved
