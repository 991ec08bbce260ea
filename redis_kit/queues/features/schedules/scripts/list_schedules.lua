-- Read schedules, by name or by when they are due next.
--
-- @keys due, names, code, stored, state, versions, watchers
-- ARGV[1]  order     "due" or "names"
-- ARGV[2]  offset
-- ARGV[3]  limit
-- returns  the time in ms, how many schedules there are, how many are due at some time, {what `versions` holds},
--          how many supervisors wake up for ticks, then of each schedule its name, when it is due, and what `code`, `stored`
--          and `state` hold of it, each "" for nothing

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply = {now, redis.call("ZCARD", names), redis.call("ZCARD", due), redis.call("HGETALL", versions), redis.call("ZCOUNT", watchers, now, "+inf")}
local chosen = ARGV[1] == "due" and due or names
for _, name in ipairs(redis.call("ZRANGE", chosen, ARGV[2], ARGV[2] + ARGV[3] - 1)) do
    for _, value in ipairs({name, redis.call("ZSCORE", due, name) or "", redis.call("HGET", code, name) or "", redis.call("HGET", stored, name) or "", redis.call("HGET", state, name) or ""}) do
        reply[#reply + 1] = value
    end
end
return reply
