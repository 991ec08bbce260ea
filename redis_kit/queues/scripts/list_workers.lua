#!lua flags=no-writes
-- List the workers of a queue and the jobs in their hands.
--
-- KEYS[1]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  info     hash: worker -> since when it is alive, ms, and what it says of itself
-- KEYS[3]  running  zset of scores 0: worker/claim.number/place/id
-- ARGV[1]  limit    how many workers, and how many jobs of each, at most
-- returns  for each: worker, ms to the end of its lease, information, {worker/claim.number/place/id, ...}

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply, found = {}, redis.call("ZRANGE", KEYS[1], 0, ARGV[1] - 1, "WITHSCORES")
for at = 1, #found, 2 do
    local worker = found[at]
    local from, to = "[" .. worker .. "/", "(" .. worker .. "0"
    local jobs = redis.call("ZRANGEBYLEX", KEYS[3], from, to, "LIMIT", 0, ARGV[1])
    local information = redis.call("HGET", KEYS[2], worker) or ""
    for _, item in ipairs({worker, found[at + 1] - now, information, jobs}) do
        table.insert(reply, item)
    end
end
return reply
