#!lua
-- Make dead jobs ready as if they were new: the oldest first, or some by their ids. One that had a unique key has it
-- again unless another job took it.
-- One script: a job must be dead or ready, and have its unique key before another job takes it.
--
-- @keys sequence, signal, paused
-- ARGV[1]     limit     how many, at most, if no ids follow
-- ARGV[2...]  ids       of the jobs to requeue
-- returns     how many left the dead ones

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _move with any
-- @check_types dead
local chosen = #ARGV > 1 and {unpack(ARGV, 2)} or redis.call("ZRANGE", dead, 0, ARGV[1] - 1)
local signals = redis.call("LLEN", signal)
-- @check_types reasons, jobs, ready
-- @hook on_check

local moved, last = 0, redis.call("INCRBY", sequence, #chosen)
for at, id in ipairs(chosen) do
    local record = redis.call("ZSCORE", dead, id) and redis.call("HGET", jobs, id)
    if record then
        local priority, _, _, _, payload = read_record(record)
        local place = ready_place(id, priority, last - #chosen + at)
        move(id, "dead", "ready", {record = record_head(priority, 0, 0, now) .. payload, place = place})
        -- @hook on_requeue(id)
        moved = moved + 1
    elseif record == false and redis.call("ZREM", dead, id) == 1 then
        redis.call("HDEL", reasons, id)
        moved = moved + 1
    end
end
if moved > 0 then wake(signals) end
return moved
