#!lua flags=allow-oom
-- End attempts: jobs of a worker are done, or go back to the queue, or are dead. Features store their results.
-- One script: the end, the next place and the result of a job change together or not at all.
--
-- @keys features, workers, signal
-- @if any
-- @keys sequence
-- @end any
-- ARGV[1]    features  which the script was made for
-- ARGV[2]    worker    whose claims they are
-- ARGV[3]    lease     ms
-- ARGV[4]    limit     how many dead jobs are kept
-- ARGV[5]    others    how many do not end as done; then of each eight parts: worker/claim/place/id; the kind of its end:
--                        retry      it failed; ready or scheduled again, or dead if its attempts are used up
--                        snooze     its task asked to run later; the attempt does not count
--                        unfit      its worker can't run its call; as snooze, with a delay that grows
--                        later      it is claimed again after a delay, due and expiring as before; the attempt does not count
--                        away       as later, but another system has it, so it keeps its places in its limits
--                        return     it was not begun: ready in its old place; the attempt does not count
--                        cancel     it was cancelled, and is gone
--                      delay in ms; attempts that a job has; ms beyond its time in which it must begin, 0 for ever; the reason;
--                      the error for its result, "" without one; ms to store that, 0 if no result is stored
-- ARGV[6...]  acks     how many are done; worker/claim/place/id of each; the ids; then of each that has a result its number,
--                      from 1, the result, and the ms to store it; for the stream of done jobs 0, a line about each, and how
--                      many it keeps
-- returns     how each of the others ended: 1 ready, 2 scheduled, 3 dead, 7 cancelled and gone, also when repeated; 0 if its
--             claim was lost; 5 if it was unfit for too long, 6 if it is to be cancelled: then nothing was changed. Then the
--             numbers, below 0, of done jobs whose claims were lost. Nothing if there is nothing to say. Or "FEATURES" and a
--             number: nothing was done, as the queue uses other features.

local used = redis.call("GET", features) or "0"
if used ~= ARGV[1] then return "FEATURES " .. used end
local worker, lease, dead_limit, others = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local first = 6 + 8 * others  -- of what is about done jobs
local count, reply, may_start, sum, done = tonumber(ARGV[first]), {}, false, nil, 0
local clock = redis.call("TIME")
local now, first_field = clock[1] * 1000 + math.ceil(clock[2] / 1000), math.floor(clock[1] / 60) * 4
local left = (redis.call("ZSCORE", workers, worker) or 0) - now

-- @hook on_check
-- @include _minutes
-- @include _record_head
-- @if any
-- @include _record
-- @include _features
-- @include _valid_place
-- @end any
-- @include _move with finish
-- @if any
-- @check_types answers, minutes, ready, scheduled, dead, reasons, sequence, signal
local READY, SCHEDULED, DEAD, EXHAUSTED, TO_CANCEL, CANCELLED = 1, 2, 3, 5, 6, 7

-- A repeated call gets an answer that was lost on its way: the last 250, at least, are remembered.
local function earlier_answer(member)
    for _, entry in ipairs(redis.call("LRANGE", answers, 0, -1)) do
        local answer, of = string.match(entry, "^(%d) (.*)$")
        if of == member then return tonumber(answer) end
    end
    return 0
end

local function remember_answer(member, answer)
    if redis.call("RPUSH", answers, answer .. " " .. member) > 300 then redis.call("LTRIM", answers, -250, -1) end
    redis.call("PEXPIRE", answers, 3600 * 1000)
    return answer
end

-- The kinds of ends. They return the next state of the job and how it gets there; nothing if it is to be cancelled.
local go_on = {}

function go_on.retry(job)
    local priority, attempts, crashes, _, payload = read_record(job.record)
    if attempts < job.most and job.is_cancelled then return nil end
    if count_minute(1, 1) == 1 then begin_minute() end
    if attempts >= job.most then return "dead", {reason = job.reason} end
    local record = record_head(priority, attempts, crashes, now + job.delay) .. payload
    if job.delay > 0 then return "scheduled", {due = now + job.delay, record = record} end
    local turn = redis.call("INCRBY", sequence, 1)
    return "ready", {place = ready_place(job.id, priority, turn), record = record}
end

function go_on.snooze(job)
    if job.is_cancelled then return nil end
    local at, due = now + job.delay, select(4, read_record(job.record))
    if job.expires > 0 then
        at = math.max(now, math.min(at, due + job.expires + 1))  -- so that its expiry is soon seen
        due = due + 1  -- claim_by_id can tell a message about this run from one about the next
    else
        due = at
    end
    return "scheduled", {due = at, record = uncounted(job.record, due)}
end

function go_on.later(job)
    return "scheduled", {due = now + job.delay, record = uncounted(job.record), lane = job.kind}
end
go_on.away = go_on.later

function go_on.cancel()
    return "gone", {}
end

go_on["return"] = function(job)
    return "ready", {place = valid_place(job.place), record = uncounted(job.record)}
end
-- @hook on_kinds(go_on, EXHAUSTED)

local function settle(number, member, kind, delay, most, expires, reason, failure, ttl_ms)
    local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
    local job = {id = id, kind = kind, place = place, delay = tonumber(delay), most = tonumber(most), expires = tonumber(expires)}
    job.reason, job.error, job.ttl_ms = reason, failure, ttl_ms
    job.record = id and redis.call("HGET", jobs, id)
    if not redis.call("ZSCORE", running, member) then
        return earlier_answer(member)
    elseif not job.record then
        redis.call("ZREM", running, member)
        return 0
    end
    -- @hook on_settle(id, job)
    if job.is_cancelled and (kind == "later" or kind == "away" or kind == "return") then
        note_ending(id, "cancelled", "", job.record)
        may_start = move(id, "running", "gone", {member = member}) or may_start
        return remember_answer(member, CANCELLED)
    end
    local state, how = go_on[kind](job)
    if not state then return job.is_cancelled and TO_CANCEL or how end
    -- @hook on_attempt(number, job, kind, state)
    how.member = member
    may_start = move(id, "running", state, how) or may_start
    if kind == "away" then
        -- @hook on_away(id)
    end
    if state == "dead" then drop_oldest() end
    if kind == "return" then return READY end
    return remember_answer(member, ({ready = READY, scheduled = SCHEDULED, dead = DEAD, gone = CANCELLED})[state])
end
for at = 6, first - 1, 8 do reply[#reply + 1] = settle((at - 6) / 8, unpack(ARGV, at, at + 7)) end
-- @end any
if count > 0 then
    local lost, records
    local to_store, wakes = first + 1 + 2 * count, may_start
    local members, ids = {unpack(ARGV, first + 1, first + count)}, {unpack(ARGV, first + 1 + count, to_store - 1)}
    lost, done, sum, records, may_start = finish(members, ids, ARGV[to_store])
    may_start = wakes or may_start
    -- @hook on_done(records, to_store)
    for _, number in ipairs(lost) do reply[#reply + 1] = -number end
end
if sum == done and done > 0 then begin_minute() end
-- The end of a job is a sign of life of its worker, if that has a lease.
if left < lease * 0.95 then
    redis.call("ZADD", workers, "XX", now + lease, worker)
    redis.call("PEXPIRE", answers, 3600 * 1000)
end
if may_start then
-- @include _wake
    wake()
end
return #reply > 0 and reply or nil
