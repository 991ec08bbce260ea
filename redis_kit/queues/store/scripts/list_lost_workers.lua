#!lua flags=no-writes
-- List the workers of a queue that ended without signing off in the last day. One that came back is not listed.
--
-- KEYS[1]  lost     hash: worker -> when it was lost, ms on the server's clock, its jobs, pid, its supervisor's pid, host
-- KEYS[2]  workers  zset: worker -> when its lease ends, ms
-- returns  for each: worker, for how many ms it is lost, and what the hash holds

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply, all = {}, redis.call("HGETALL", KEYS[1])
for at = 1, #all, 2 do
    local age = now - (tonumber(string.match(all[at + 1], "^%d+")) or 0)
    if age < 24 * 3600 * 1000 and not redis.call("ZSCORE", KEYS[2], all[at]) then
        for _, item in ipairs({all[at], math.max(0, age), all[at + 1]}) do
            table.insert(reply, item)
        end
    end
end
return reply
