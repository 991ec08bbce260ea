#!lua flags=no-writes
-- Read schedules, by name or by when they are due next. Those of one beginning are counted as if there were no others.
--
-- @keys due, names, code, stored, state, watchers
-- ARGV[1]  order     "due" or "names"
-- ARGV[2]  offset
-- ARGV[3]  limit
-- ARGV[4]  beginning  of the names to read, "" for all; with the order "names"
-- returns  the time in ms, how many schedules there are, how many supervisors wake up for ticks, then of each schedule its
--          name, when it is due, and what `code`, `stored` and `state` hold of it, each "" for nothing

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local first, last = "[" .. ARGV[4], "[" .. ARGV[4] .. "\255"
local total, watching = redis.call("ZLEXCOUNT", names, first, last), redis.call("ZCOUNT", watchers, now, "+inf")
local reply = {now, total, watching}
local found
if ARGV[1] == "due" then
    found = redis.call("ZRANGE", due, ARGV[2], ARGV[2] + ARGV[3] - 1)
else
    found = redis.call("ZRANGEBYLEX", names, first, last, "LIMIT", ARGV[2], ARGV[3])
end
for _, name in ipairs(found) do
    reply[#reply + 1] = name
    reply[#reply + 1] = redis.call("ZSCORE", due, name) or ""
    for _, key in ipairs({code, stored, state}) do reply[#reply + 1] = redis.call("HGET", key, name) or "" end
end
return reply
