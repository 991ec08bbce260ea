#!lua flags=no-writes
-- List the workers of a queue that ended without signing off in the last day. One that came back is not listed.
--
-- @keys lost, workers
-- returns  for each: worker, for how many ms it is lost, and what the hash holds

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply, all = {}, redis.call("HGETALL", lost)
for at = 1, #all, 2 do
    local age = now - (tonumber(string.match(all[at + 1], "^%d+")) or 0)
    if age < 24 * 3600 * 1000 and not redis.call("ZSCORE", workers, all[at]) then
        for _, item in ipairs({all[at], math.max(0, age), all[at + 1]}) do
            table.insert(reply, item)
        end
    end
end
return reply
