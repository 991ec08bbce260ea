#!lua flags=no-writes
-- List the workers of a queue and their running jobs.
--
-- KEYS[1]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- KEYS[2]  info     hash: worker -> since when it is alive, ms, and what it reports about itself
-- KEYS[3]  running  zset of scores 0: worker/claim/place/id
-- KEYS[4]  jobs     hash: id -> record
-- ARGV[1]  limit    how many workers, and how many jobs of each, at most
-- ARGV[2]  bytes    of records that are read, at most, but for the last: after that no more jobs are read
-- returns  for each: worker, ms to the end of its lease, information, {worker/claim/place/id of a job, for how many
--          ms it runs, -1 when that is not stored, the first bytes of its body, ...}

local limit, bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _history
local function age_and_body(member)
    local record = bytes > 0 and redis.call("HGET", KEYS[4], string.match(member, "^[^/]*/[^/]*/[^/]*/(.*)$") or "")
    if not record then
        return -1, ""
    end
    bytes = bytes - #record
    local history, body = history_of(record)
    local begun = tonumber(string.match(history or "", " (%d+)/[^ ]*$"))
    return begun and math.max(0, now - begun) or -1, string.sub(record, body, body + 511)
end

local reply, workers = {}, redis.call("ZRANGE", KEYS[1], 0, limit - 1, "WITHSCORES")
for at = 1, #workers, 2 do
    local worker, jobs = workers[at], {}
    local from, to = "[" .. worker .. "/", "(" .. worker .. "0"
    for _, member in ipairs(redis.call("ZRANGEBYLEX", KEYS[3], from, to, "LIMIT", 0, limit)) do
        local count = #jobs
        jobs[count + 1], jobs[count + 2], jobs[count + 3] = member, age_and_body(member)
    end
    local information = redis.call("HGET", KEYS[2], worker) or ""
    local left = math.max(-2 ^ 53, math.min(2 ^ 53, workers[at + 1] - now))
    for _, item in ipairs({worker, left, information, jobs}) do
        table.insert(reply, item)
    end
end
return reply
