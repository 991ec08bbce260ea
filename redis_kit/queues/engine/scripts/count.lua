#!lua flags=no-writes
-- Count a queue's jobs by state, at one moment.
--
-- @keys scheduled, ready, running, dead, parked
-- returns  how many are scheduled, ready, running, dead; those that wait for a limit are ready

local reply = {}
for at, key in ipairs({scheduled, ready, running, dead}) do
    reply[at] = redis.call("ZCARD", key)
end
reply[2] = reply[2] + redis.call("ZLEXCOUNT", parked, "[job\n", "(job\11")
return reply
