#!lua flags=allow-oom
-- Make jobs ready: dead ones as if they were new, the oldest first or some by their ids; or scheduled ones by their ids, before
-- their time, whose attempts stay counted. A dead one that had a unique key has it again unless another job took it.
-- One script: a job must be dead or ready, and have its unique key before another job takes it.
--
-- @keys jobs, scheduled, dead, reasons, sequence, signal
-- ARGV[1]     state     dead or scheduled
-- ARGV[2]     limit     how many, at most, if no ids follow
-- ARGV[3...]  ids       of the jobs to requeue
-- returns     how many left the state

local state, limit = ARGV[1], ARGV[2]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
-- @include redis_kit.queues.engine:_wake
-- @include redis_kit.queues.engine:_move with any
-- @check_types dead, scheduled, reasons, jobs, ready, signal
-- @hook on_check
local from, moved = state == "dead" and dead or scheduled, 0
local ids = #ARGV > 2 and {unpack(ARGV, 3)} or redis.call("ZRANGE", dead, 0, limit - 1)
local last = redis.call("INCRBY", sequence, #ids)
for at, id in ipairs(ids) do
    local record = redis.call("ZSCORE", from, id) and redis.call("HGET", jobs, id)
    if record then
        local priority, attempts, crashes, _, payload = read_record(record)
        local head = state == "dead" and record_head(priority, 0, 0, now) or record_head(priority, attempts, crashes, now)
        move(id, state, "ready", {record = head .. payload, place = ready_place(id, priority, last - #ids + at)})
        if state == "dead" then
            -- @hook on_requeue(id)
        end
        moved = moved + 1
    elseif state == "dead" and redis.call("ZREM", dead, id) == 1 then
        redis.call("HDEL", reasons, id)
        moved = moved + 1
    end
end
if moved > 0 then wake() end
return moved
