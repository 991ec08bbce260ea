#!lua flags=no-writes
-- List the workers of a queue and their running jobs, and those that ended without signing off in the last day.
--
-- @keys workers, info, running, jobs, lost
-- ARGV[1]  limit    how many workers, and how many jobs of each, at most
-- ARGV[2]  bytes    of records that are read, at most, but for the last: after that no more jobs are read
-- returns  {of each: worker, ms to the end of its lease, information, the number of its jobs, {worker/claim/place/id of
--          a job, for how many ms it runs, -1 when that is not stored, the first bytes of its body, ...}}, {of each lost
--          one that did not come back: worker, for how many ms it is lost, and what the hash holds}

local limit, bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function age_and_body(member)
    local record = bytes > 0 and redis.call("HGET", jobs, string.match(member, "^[^/]*/[^/]*/[^/]*/(.*)$") or "")
    if not record then
        return -1, ""
    end
    bytes = bytes - #record
    -- The history of a job whose result is stored is a line that begins with ~, and ends with the begin of the last attempt.
    local history, body = string.match(record, "^[^\n]*\n(~[^\n]*)\n()")
    body = body or string.match(record, "^[^\n]*\n()") or 1
    local begun = tonumber(string.match(history or "", " (%d+)/[^ ]*$"))
    return begun and math.max(0, now - begun) or -1, string.sub(record, body, body + 511)
end

local alive, gone, leases = {}, {}, redis.call("ZRANGE", workers, 0, limit - 1, "WITHSCORES")
for at = 1, #leases, 2 do
    local worker, held = leases[at], {}
    local from, to = "[" .. worker .. "/", "(" .. worker .. "0"
    for _, member in ipairs(redis.call("ZRANGEBYLEX", running, from, to, "LIMIT", 0, limit)) do
        local count = #held
        held[count + 1], held[count + 2], held[count + 3] = member, age_and_body(member)
    end
    local information = redis.call("HGET", info, worker) or ""
    local left = math.max(-2 ^ 53, math.min(2 ^ 53, leases[at + 1] - now))
    for _, item in ipairs({worker, left, information, redis.call("ZLEXCOUNT", running, from, to), held}) do
        table.insert(alive, item)
    end
end
local all = redis.pcall("HGETALL", lost)  -- nothing if it is damaged
for at = 1, #all, 2 do
    local age = now - (tonumber(string.match(all[at + 1], "^%d+")) or 0)
    if age < 24 * 3600 * 1000 and not redis.call("ZSCORE", workers, all[at]) then
        for _, item in ipairs({all[at], math.max(0, age), all[at + 1]}) do
            table.insert(gone, item)
        end
    end
end
return {alive, gone}
