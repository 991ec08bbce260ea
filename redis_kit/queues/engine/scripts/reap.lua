#!lua flags=allow-oom
-- Return the jobs of a worker that died or signs off, in their old place. Those that it ran when it died count a crash, the others
-- are as if never claimed.
--
-- @keys running, workers, info, signal, lost
-- @if over
-- @keys answers
-- @end over
-- ARGV[1]     worker
-- ARGV[2]     how      died: its supervisor says so, and which jobs it ran; silent: its lease is over, it may have run all of them;
--                      over: it signs off. No worker was late while its jobs ran, so these are due now
-- ARGV[3]     take     how many jobs to take in one call
-- ARGV[4]     crashes  that a job may have in which it was alone, until it is dead
-- ARGV[5]     limit    how many dead jobs are kept
-- ARGV[6]     beside   "" if it ran one job, else a line break, queue and id of each; if it died
-- ARGV[7...]  started  ids of the jobs that it ran, if it died
-- returns     how many were taken, as many as `take` when there may be more; how many results others are to store; how many are
--             ready again; then of each dead one its id, why, and the first bytes of its body
--
-- A job was alone in a worker that says so. A program without a supervisor says nothing: there it was if it is the only one here.

local worker, how, take, most, dead_limit, beside = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _move with any, bury
-- @include _valid_place
-- @include _returned_record
-- @keys jobs, crashed
-- @check_types workers, running, ready, dead, info, jobs, reasons, signal, crashed, lost
-- @hook on_check
local reply, wakes, started = {0, 0, 0}, false, {}
local report = redis.call("HGET", info, worker) or ""
local members = redis.call("ZRANGEBYLEX", running, "[" .. worker .. "/", "(" .. worker .. "0", "LIMIT", 0, math.max(take, 20))
if how == "silent" then
    if tonumber(redis.call("ZSCORE", workers, worker) or 0) >= now then
        return reply
    end
    local only = #members == 1 and not string.find(report, "\34supervisor\34", 1, true)
    if not only and not string.find(report, "\34alone\34: ?true") then
        for at = 1, math.min(20, #members) do
            beside = beside .. "\n/" .. (string.match(members[at], "^[^/]+/[^/]+/[^/]+/(.*)$") or "")
        end
    end
end
for at = 7, #ARGV do started[ARGV[at]] = true end
members = {unpack(members, 1, math.min(take, #members))}

-- Count a crash for a job. `beside` has a line for each job that the worker ran, "" if it ran no other. One that was not alone may be
-- innocent: its attempt does not count, and it does not die of it, or of ten times as many: then nobody lets it run alone. One that
-- was alone too often is added to the reply. Returns its record, and the reason if it is to be dead.
local function count_crash(id, record)
    if beside ~= "" then record = uncounted(record) end
    local priority, attempts, crashes, _, payload = read_record(record)
    local stored = crashes > 0 and redis.call("HGET", crashed, id) or ""
    local times, before = string.match(stored, "^(%d+)(.*)$")
    times = (tonumber(times) or 0) + (beside == "" and 1 or 0)
    for _, other in ipairs(redis.call("HRANDFIELD", crashed, 10)) do  -- those of jobs that have ended make room
        if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", crashed, other) end
    end
    redis.call("HSET", crashed, id, string.format("%.0f", times) .. (beside == "" and before or beside))
    redis.call("PEXPIRE", crashed, 30 * 24 * 3600 * 1000)
    record = record_head(priority, attempts, crashes + 1, now) .. payload
    if times < most and crashes + 1 < 10 * most then
        return record
    end
    local reason = string.format("poison: %d process%s died in which it ran alone", times, times == 1 and "" or "es")
    if times < most then reason = string.format("poison: %d processes died in which it ran", crashes + 1) end
    local start = string.match(payload, "^~[^\n]*\n()") or 1
    for _, item in ipairs({id, reason, string.sub(payload, start, start + 511)}) do
        table.insert(reply, item)
    end
    note_ending(id, "dead", reason, record)
    return record, reason
end

for _, member in ipairs(members) do
    local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
    local record, may_start = returned_record(id, member)
    wakes = may_start or wakes
    if record then
        local reason
        if how == "silent" or started[id] then
            record, reason = count_crash(id, record)
        else
            record = uncounted(record, how == "over" and now)
        end
        reply[3] = reply[3] + (reason and 0 or 1)
        local change = {member = member, record = record, place = valid_place(place), reason = reason}
        wakes = move(id, "running", reason and "dead" or "ready", change) or wakes
    end
end
if wakes then wake() end
reply[1] = #members
if #members < take then
    redis.call("ZREM", workers, worker)
    redis.call("HDEL", info, worker)
    -- @if over
    redis.call("DEL", answers)
    redis.call("HDEL", lost, worker)  -- it came back before
    -- @end over
end
-- A worker that ended without signing off is recorded, and how many of its jobs were taken; the latest 50 for a day. A program
-- without a supervisor that held no job is not, as it may have ended in order. Its report is JSON.
local supervisor = string.match(report, "\34supervisor_pid\34: ?(%d+)")
if how == "silent" and (#members > 0 or supervisor) then
    local pid, host = string.match(report, "\34pid\34: ?(%d+)"), string.match(report, "\34host\34: ?\34([^\34]*)")
    local before = tonumber(string.match(redis.call("HGET", lost, worker) or "", "^%d+ (%d+) ")) or 0
    local process = (pid or "0") .. " " .. (supervisor or "0") .. " " .. string.sub(host or "?", 1, 255)
    redis.call("HSET", lost, worker, string.format("%.0f %.0f ", now, before + #members) .. process)
    redis.call("PEXPIRE", lost, 24 * 3600 * 1000)
    local all, oldest, earliest = redis.call("HGETALL", lost), worker, now
    for at = 1, #all, 2 do
        local time = tonumber(string.match(all[at + 1], "^%d+")) or 0
        if time < earliest then oldest, earliest = all[at], time end
    end
    if #all > 100 then redis.call("HDEL", lost, oldest) end
end
drop_oldest()
local unrecorded = 0
-- @hook on_report(unrecorded)
reply[2] = unrecorded
return reply
