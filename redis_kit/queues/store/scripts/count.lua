#!lua flags=no-writes
-- Count a queue's jobs by state, at one moment.
--
-- KEYS[1]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  running    zset of scores 0: worker/claim/place/id
-- KEYS[4]  dead       zset: id -> when it died, ms
-- KEYS[5]  parked     zset of scores 0: what waits for a limit
-- returns  how many are scheduled, ready, running, dead; those that wait for a limit are ready

local reply = {}
for at = 1, 4 do
    reply[at] = redis.call("ZCARD", KEYS[at])
end
reply[2] = reply[2] + redis.call("ZLEXCOUNT", KEYS[5], "[job\n", "(job\11")
return reply
