#!lua flags=allow-oom
-- Make a scheduled job ready before its time. Its attempts stay counted.
--
-- @keys jobs, ready, scheduled, sequence, signal, paused, lanes
-- ARGV[1]  id
-- returns  1 when it is ready now, 0 if no job of this id was scheduled

local id = ARGV[1]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _ready_place
-- @include _make_ready
local record = redis.call("HGET", jobs, id)
local signals = redis.call("LLEN", signal)
-- @check_types ready, lanes
if not record or not redis.call("ZSCORE", scheduled, id) then
    return 0
end
make_ready(id, record)
wake(signals)
return 1
