#!lua flags=allow-oom
-- Make a scheduled job ready before its time. Its attempts stay counted.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  sequence   counter of jobs that got ready
-- KEYS[5]  signal     list: one element while a worker is to wake up
-- KEYS[6]  paused     string  the queue is paused while it exists: since when, ms
-- KEYS[7]  lanes      hash: id -> its rank in its lane, and that
-- ARGV[1]  id
-- returns  1 when it is ready now, 0 if no job of this id was scheduled

local jobs, ready, scheduled, sequence, signal, paused, lanes = unpack(KEYS)
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
