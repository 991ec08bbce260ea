#!lua flags=allow-oom
-- Keep a worker alive, and return which workers are dead: the caller returns their jobs.
--
-- @keys workers, info, orders, answers, running, ready, scheduled
-- ARGV[1]   worker
-- ARGV[2]   lease        ms
-- ARGV[3]   information  what the worker reports about itself
-- ARGV[4]   after        running job of the worker after which its list begins, "": with the first
-- ARGV[5]   page         how many of its running jobs are listed, at most
-- returns   ms to the next job, ms to the end of another's lease (-1: never), the worker's command or "", {ids of its jobs to
--           cancel}, {worker/claim/place/id of its running jobs}, {shapes of calls that workers returned, with what is stored
--           about each}, the time in ms, since when the worker is alive, how many results others are to store, {dead workers}
--
-- After an outage all leases are over, though no worker died. So if no worker was alive for a whole lease there is only
-- notice: a lease from when the first of them was alive, marked by a half in its end. After it any worker may act.

local worker, lease, information = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _worker_lease
-- Return since when the server is available to all workers, as far as anybody can tell: those with heartbeats in time
-- have seen it.
local function up_since()
    local oldest, half = now, string.format("%.0f", now + lease / 2)
    local alive = redis.call("ZRANGEBYSCORE", workers, half, "+inf", "WITHSCORES", "LIMIT", 0, 100)
    for at = 1, #alive, 2 do
        if alive[at + 1] % 1 == 0 then
            local since = tonumber(string.match(redis.call("HGET", info, alive[at]) or "", "^%d+"))
            oldest = math.min(oldest, since or oldest)
        end
    end
    return oldest
end

-- @check_types running, ready, scheduled, info
-- @hook on_check
local left = (redis.call("ZSCORE", workers, worker) or 0) - now
local stored, cancelled, shapes = redis.call("HMGET", orders, worker, worker .. "/until"), {}, {}
local command = (tonumber(stored[2] or now) or 0) >= now and stored[1] or ""
-- @hook on_heartbeat(worker, cancelled, shapes)
if stored[1] then redis.call("HDEL", orders, worker, worker .. "/until") end
renew_lease(redis.call("HGET", info, worker) and left or 0)
local since, said_before = string.match(redis.call("HGET", info, worker), "^(%d+) (.*)$")
since = tonumber(since) or now
if said_before ~= information then
    redis.call("HSET", info, worker, string.format("%.0f ", since) .. information)
end
local first = ARGV[4] == "" and "[" .. worker .. "/" or "(" .. ARGV[4]
local claims = redis.call("ZRANGEBYLEX", running, first, "(" .. worker .. "0", "LIMIT", 0, ARGV[5])

local silent = redis.call("ZRANGEBYSCORE", workers, "-inf", string.format("(%.0f", now), "WITHSCORES", "LIMIT", 0, 10)
local notice, dead_workers = #silent > 0 and up_since() + lease, {}
for at = 1, #silent, 2 do
    if now < notice and silent[at + 1] % 1 == 0 then
        redis.call("ZADD", workers, string.format("%.0f.5", notice), silent[at])
    else
        dead_workers[#dead_workers + 1] = silent[at]
    end
end
local coming, pause, is_paused = tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), -1, false
-- @hook on_next(coming)
-- @hook on_pause(pause, is_paused)
local wait = redis.call("ZCARD", ready) > 0 and 0 or coming and math.max(0, coming - now) or -1
if is_paused then wait = pause < 0 and -1 or math.max(1, pause) end
local unrecorded = 0
-- @hook on_report(unrecorded)
local next_end = next_lease_end(#dead_workers)
return {wait, next_end, command, cancelled, claims, shapes, now, since, unrecorded, dead_workers}
