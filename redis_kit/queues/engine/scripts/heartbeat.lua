#!lua flags=allow-oom
-- Keep a worker alive, and return the jobs of dead workers to the queue.
-- One script: a lease that is renewed and one that is over are compared at one moment.
--
-- @keys orders, unknown, signal, answers, paused, lost
-- ARGV[1]   worker
-- ARGV[2]   lease        ms
-- ARGV[3]   information  what the worker reports about itself
-- ARGV[4]   crashes      that a job may have in which it was alone, until it is dead
-- ARGV[5]   limit        how many dead jobs are kept
-- ARGV[6]   after        running job of the worker after which its list begins, "": with the first
-- ARGV[7]   page         how many of its running jobs are listed, at most
-- returns   ms to the next job, ms to the end of another's lease (-1: never), jobs returned, the worker's command or "",
--           {ids of its jobs to cancel}, {worker/claim/place/id of its running jobs}, {what `unknown` holds}, the
--           time in ms, since when the worker is alive, how many results others are to store, then the id, the reason and the first bytes of the body of each job that was buried
--
-- After an outage all leases are over, though no worker died. So if no worker was alive for a whole lease there is only
-- notice: a lease from when the first of them was alive, marked by a half in its end. After it any worker may act.
--
-- A job was alone in a worker that says so. A program without a supervisor says nothing: there it was if it is the only one here.

local worker, lease, information, most, dead_limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _worker_lease
-- @include _next_lease_end
-- @include _wake
-- @include _move with any, bury
-- @include _endings
-- @include _count_crash
-- @include _valid_place
-- @include _returned_record
-- @include _return_jobs
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
-- Record that a worker ended without signing off, and how many of its jobs were taken; the latest 50 for a day. A program
-- without a supervisor that held no job is not recorded, as it may have ended in order. Its report is JSON.
local function note_lost(from, jobs, report)
    local supervisor = string.match(report, "\34supervisor_pid\34: ?(%d+)")
    if jobs == 0 and not supervisor then
        return
    end
    local pid, host = string.match(report, "\34pid\34: ?(%d+)"), string.match(report, "\34host\34: ?\34([^\34]*)")
    local before = tonumber(string.match(redis.call("HGET", lost, from) or "", "^%d+ (%d+) ")) or 0
    local process = (pid or "0") .. " " .. (supervisor or "0") .. " " .. string.sub(host or "?", 1, 255)
    redis.call("HSET", lost, from, string.format("%.0f %.0f ", now, before + jobs) .. process)
    redis.call("PEXPIRE", lost, 24 * 3600 * 1000)
    if redis.call("HLEN", lost) <= 50 then
        return
    end
    local oldest, earliest, all = from, now, redis.call("HGETALL", lost)
    for at = 1, #all, 2 do
        local time = tonumber(string.match(all[at + 1], "^%d+")) or 0
        if time < earliest then oldest, earliest = all[at], time end
    end
    redis.call("HDEL", lost, oldest)
end
-- @check_types running, ready, scheduled, dead, info, jobs, reasons, unknown, signal, lost, crashed
-- @hook on_check
local left = (redis.call("ZSCORE", workers, worker) or 0) - now
local stored, cancelled = redis.call("HMGET", orders, worker, worker .. "/until"), {}
local command = (tonumber(stored[2] or now) or 0) >= now and stored[1] or ""
-- @hook on_heartbeat(worker, cancelled)
if stored[1] then redis.call("HDEL", orders, worker, worker .. "/until") end
renew_lease(redis.call("HGET", info, worker) and left or 0)
local since, said_before = string.match(redis.call("HGET", info, worker), "^(%d+) (.*)$")
since = tonumber(since) or now
if said_before ~= information then
    redis.call("HSET", info, worker, string.format("%.0f ", since) .. information)
end
local first = ARGV[6] == "" and "[" .. worker .. "/" or "(" .. ARGV[6]
local claims = redis.call("ZRANGEBYLEX", running, first, "(" .. worker .. "0", "LIMIT", 0, ARGV[7])
local reply, room = {0, 0, 0, command, cancelled, claims, redis.call("HGETALL", unknown), now, since, 0}, 100

-- The jobs that a dead worker held, with an empty name for this queue; "" for one that was alone.
local function ran_beside(other, report)
    local held = redis.call("ZRANGEBYLEX", running, "[" .. other .. "/", "(" .. other .. "0", "LIMIT", 0, 20)
    local only = #held == 1 and not string.find(report, "\34supervisor\34", 1, true)
    if only or string.find(report, "\34alone\34: ?true") then return "" end
    for at, member in ipairs(held) do held[at] = "\n/" .. (string.match(member, "^[^/]+/[^/]+/[^/]+/(.*)$") or "") end
    return table.concat(held)
end

local silent = redis.call("ZRANGEBYSCORE", workers, "-inf", string.format("(%.0f", now), "WITHSCORES", "LIMIT", 0, 10)
local notice = #silent > 0 and up_since() + lease
for at = 1, #silent, 2 do
    local other, noticed = silent[at], silent[at + 1] % 1 > 0
    if now < notice and not noticed then
        redis.call("ZADD", workers, string.format("%.0f.5", notice), other)
    elseif room > 0 then
        local report = redis.call("HGET", info, other) or ""
        local beside = ran_beside(other, report)
        local taken = return_jobs(other, room, function(id, record)
            local changed, reason = count_crash(reply, beside, id, record)
            reply[3] = reply[3] + (reason and 0 or 1)
            return changed, reason
        end)
        note_lost(other, taken, report)
        room = room - taken
    end
end
local coming = tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2])
-- @hook on_next(coming)
local pause = redis.call("PTTL", paused)
if pause == -2 then
    reply[1] = redis.call("ZCARD", ready) > 0 and 0 or coming and math.max(0, coming - now) or -1
else
    reply[1] = pause < 0 and -1 or math.max(1, pause)
end
reply[2] = next_lease_end()
if #silent > 0 then drop_oldest() end
local unrecorded = 0
-- @hook on_report(unrecorded)
reply[10] = unrecorded
return reply
