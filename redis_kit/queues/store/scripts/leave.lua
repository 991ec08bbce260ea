#!lua flags=allow-oom
-- Take leave of a worker: its jobs are ready again, in their old place, and the attempt does not count.
-- They are due now: for as long as they ran nobody was late.
--
-- KEYS[1]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  info     hash: worker -> since when it is alive, ms, and what it says of itself
-- KEYS[3]  running  zset of scores 0: worker/claim.number/place/id
-- KEYS[4]  jobs     hash: id -> record
-- KEYS[5]  ready    zset: id -> place
-- KEYS[6]  signal   list: one element while a worker should look
-- KEYS[7]  settled  hash: worker -> its last answers
-- KEYS[8]  paused   the queue is paused while it exists: since when, ms
-- ARGV[1]  worker
-- ARGV[2]  limit    how many jobs to give back in one call
-- returns  how many were given back; as many as the limit when there may be more

local workers, info, running, jobs, ready, signal, settled, paused = unpack(KEYS)
local worker, limit = ARGV[1], tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record
-- @include _wake
-- @include _sound
-- @include _return
for _, key in ipairs({workers, running, ready}) do redis.call("ZCARD", key) end
for _, key in ipairs({info, jobs, settled}) do redis.call("HLEN", key) end
redis.call("LLEN", signal)

return give_back(worker, limit, function(id, priority, attempts, crashes, _, payload)
    return write(id, priority, math.max(0, attempts - 1), crashes, now, untold(payload))
end)
