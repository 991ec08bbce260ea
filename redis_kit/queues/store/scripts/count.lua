#!lua flags=no-writes
-- Count a queue's jobs by state, at one moment.
--
-- KEYS[1]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  running    zset of scores 0: worker/claim/place/id
-- KEYS[4]  dead       zset: id -> when it died, ms
-- returns  how many are scheduled, ready, running, dead

local reply = {}
for at, key in ipairs(KEYS) do
    reply[at] = redis.call("ZCARD", key)
end
return reply
