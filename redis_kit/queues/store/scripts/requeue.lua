#!lua
-- Make dead jobs ready as if they were new: the oldest first, or some by their ids. One that had a unique key has it
-- again unless another job took it.
-- One script: a job must be dead or ready, and have its unique key before another job takes it.
--
-- @keys dead, reasons, jobs, ready, sequence, signal, paused, unique, owners, cancels, lanes
-- ARGV[1]     limit     how many, at most, if no ids follow
-- ARGV[2...]  ids       of the jobs to requeue
-- returns     how many left the dead ones

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _unique_holder
-- @include _ready_place
-- @check_types dead
local chosen = #ARGV > 1 and {unpack(ARGV, 2)} or redis.call("ZRANGE", dead, 0, ARGV[1] - 1)
local signals, any_unique = redis.call("LLEN", signal), redis.call("HLEN", owners) > 0
-- @check_types reasons, jobs, unique, cancels, ready, lanes
local any_lanes = redis.call("EXISTS", lanes) == 1

local moved, last = {}, redis.call("INCRBY", sequence, #chosen)
for at, id in ipairs(chosen) do
    if redis.call("ZREM", dead, id) == 1 then
        moved[#moved + 1] = id
        local record = redis.call("HGET", jobs, id)
        if record then
            local priority, _, _, _, payload = read_record(record)
            write_record(id, priority, 0, 0, now, payload)
            local turn = last - #chosen + at
            redis.call("ZADD", ready, any_lanes and ready_place(id, priority, turn) or place_of(priority, turn), id)
            local key = string.match(any_unique and redis.call("HGET", owners, id) or "", "^%l+ (.*)$")
            if key and not unique_holder(key) then
                redis.call("HSET", unique, key, id)
            end
        end
    end
end
if #moved > 0 then
    redis.call("HDEL", reasons, unpack(moved))
    redis.call("HDEL", cancels, unpack(moved))
    wake(signals)
end
return #moved
