#!lua flags=allow-oom
-- Acknowledge jobs, make scheduled jobs ready that are due, and claim ready jobs. A paused queue gives none.
-- One script: workers acknowledge and claim in one round trip.
--
-- @keys features, workers, info, jobs, running, ready, sequence, signal, answers, minutes
-- @if later
-- @keys scheduled
-- @end later
-- ARGV[1]    features     which the script was made for
-- ARGV[2]    worker
-- ARGV[3]    claim        unique to this call; repeated, it gives the same jobs
-- ARGV[4]    limit        how many jobs, at most
-- ARGV[5]    lease        ms
-- ARGV[6]    information  what a new worker reports about itself
-- ARGV[7...]  acks        how many; worker/claim/place/id of each; the ids; the number, result and ms to store of those with one;
--                         for the stream of done jobs 0, a line about each, and how many it keeps
-- returns    one text: a line with ms to the next job or the end of a pause, to the end of another's lease (-1: never, or
--            it was not read), the time in s and us, and the numbers of acknowledged jobs whose claim was lost; then of
--            each job the lengths of place, id and record in 1, 4 and 4 bytes, and these three. Or "FEATURES" and a number:
--            nothing was done, as the queue uses other features. With `again` the call is repeated, as its answer was lost.

local used = redis.call("GET", features) or "0"
if used ~= ARGV[1] then return "FEATURES " .. used end
local worker, owner, limit, lease, information = ARGV[2], ARGV[2] .. "/" .. ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local count, clock = tonumber(ARGV[7]), redis.call("TIME")
local now, first_field = clock[1] * 1000 + math.floor(clock[2] / 1000), math.floor(clock[1] / 60) * 4
local left, woken, waiting = (redis.call("ZSCORE", workers, worker) or 0) - now, redis.call("LLEN", signal), redis.call("ZCARD", ready)
local is_short, is_paused = left <= lease * 0.95 or left > lease or left % 1 > 0, false
local claimed, next_end, reply, is_new, done, sum = 0, -1, {"", "", "", "", ""}, false, 0, nil
local lost, pause, coming, records

-- @hook on_check
-- @hook on_check_claim
-- @hook on_pause(pause, is_paused)
-- @if again
-- @check_types repeats
-- @end again
-- @if repeats
-- @keys repeats
-- @if not again
if redis.call("ZSCORE", repeats, owner) then limit = 0 end  -- this comes in late
-- @end again
-- @end repeats
-- @if later
-- @include _record_head
-- @include _record
-- @end later
-- @if again
-- @include _features
-- @end again
-- @include _minutes
-- @include _worker_lease
-- @include _move with begin, finish
-- @if later
coming = tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2])
if coming and coming <= now and not is_paused then
    -- @check_types running, jobs, answers, minutes, info, sequence
    coming, waiting = promote()
end
-- @end later
if is_short then
    -- @check_types running, jobs, answers, minutes, info, sequence
    renew_lease(left)  -- also one that ends too late: the clock went back
end
if count > 0 then
    local to_store = 8 + 2 * count
    local members, ids = {unpack(ARGV, 8, 7 + count)}, {unpack(ARGV, 8 + count, to_store - 1)}
    lost, done, sum, records = finish(members, ids, ARGV[to_store])
    -- @hook on_done(records, to_store)
    if lost[1] then limit = 0 end  -- first the caller learns of lost ones
end
-- @if again
-- @keys repeats
-- Add the jobs of a claim that is repeated, as its answer was lost, to a reply. Returns whether the claim was made before.
-- For ten minutes it is known as repeated: the first call may still come in late, when nobody waits for its answer.
local function repeat_claim()
    local members = redis.call("ZRANGEBYLEX", running, "[" .. owner .. "/", "(" .. owner .. "0")
    for _, member in ipairs(members) do
        local place, id = string.match(member, "^[^/]+/[^/]+/([^/]+)/(.*)$")
        local record = id and redis.call("HGET", jobs, id)
        for _, item in ipairs(record and {struct.pack(">BII", #place, #id, #record), place, id, record} or {}) do
            reply[#reply + 1] = item
        end
    end
    redis.call("ZREMRANGEBYSCORE", repeats, "-inf", now - 600 * 1000)
    local added = redis.call("ZADD", repeats, now, owner)
    redis.call("PEXPIRE", repeats, 600 * 1000)
    use_feature(32)
    return added == 0 or #members > 0
end
if repeat_claim() then limit = 0 end
-- @end again
-- @hook on_admit(limit, is_paused, waiting)
if limit > 0 and waiting > 0 and not is_paused then
    local counted = redis.call("HGET", minutes, first_field + 2)
    local taken
    -- @hook on_choose(limit, taken)
    taken = taken or redis.call("ZPOPMIN", ready, limit)
    local match, sub, byte, pack = string.match, string.sub, string.byte, struct.pack  -- locals are faster
    local USUAL = "^(%-?%d+ )(%d+)() %d+ (%d+)\n()"
    local ids, members, written, attempt, size, begun, late, latest = {""}, {}, {}, nil, 0, 0, 0, 0
    claimed = #taken / 2
    for at = 1, claimed do ids[at] = taken[2 * at - 1] end
    records = redis.pcall("HMGET", jobs, unpack(ids))
    for at = 1, records.err and 0 or claimed do
        local id, place, record = ids[at], taken[2 * at], records[at]
        if record then
            local priority, attempts, middle, due, start = match(record, USUAL)
            if not priority or #priority > 5 or #attempts > 7 then
                -- As in _record: numbers out of range are cut to size, and a record with another head is all payload.
                local one, two, three, four, payload = string.match(record, "^(%-?%d+) (%d+) (%d+) (%d+)\n(.*)$")
                one, two = math.max(-100, math.min(100, one or 0)), math.min(1e6, two or 0)
                three, four = math.min(1e6, three or 0), math.min(2 ^ 53, four or 0)
                record = string.format("%.0f %.0f %.0f %.0f\n", one, two, three, four) .. (payload or record)
                priority, attempts, middle, due, start = string.match(record, USUAL)
            end
            local history = byte(record, start) == 126 and string.find(record, "\n", start, true)
            if history then
                attempt = attempt or string.format(" %.0f/", now) .. worker
                record = string.sub(record, 1, history - 1) .. attempt .. string.sub(record, history)
            end
            record = priority .. (attempts == "0" and "1" or attempts + 1) .. sub(record, middle)
            local lateness = now - due
            if lateness < now then  -- else its time makes no sense
                begun = begun + 1
                if lateness > 0 then late = late + lateness end
                if lateness > latest then latest = lateness end
            end
            members[size + 1], members[size + 2] = "0", owner .. "/" .. place .. "/" .. id
            written[size + 1], written[size + 2] = id, record
            reply[2 * size + 2], reply[2 * size + 3] = pack(">BII", #place, #id, #record), place
            reply[2 * size + 4], reply[2 * size + 5] = id, record
            size = size + 2
        end
    end
    begin(taken, members, written, records.err and records)
    -- @hook on_begin
    if begun > 0 then
        local before = counted and #counted == 24 and counted or string.rep("\0", 24)
        local others, sum, greatest = struct.unpack(">I8I8I8", before)
        redis.call("HSET", minutes, first_field + 2, struct.pack(">I8I8I8", others + begun, sum + late, math.max(greatest, latest)))
        is_new = not counted
    end
end
-- @hook on_look_ahead(coming, claimed, waiting)
if is_new or done > 0 and sum == done then begin_minute() end
local more = waiting > claimed and not is_paused
local wait = more and 0 or coming and math.max(0, coming - clock[1] * 1000 - clock[2] / 1000) or -1
if is_paused then wait = pause < 0 and -1 or math.max(1, pause) end
-- A worker that claims all it can hold does not wait for jobs; another one has to watch what is left.
if claimed < limit and not more then
    if woken > 0 then redis.call("DEL", signal) end
elseif woken == 0 and wait >= 0 and wait <= 2000 and not is_paused then
    redis.call("RPUSH", signal, 1)
    redis.call("PEXPIRE", signal, 10000)
end
if claimed == 0 or is_short then next_end = next_lease_end(0) end
local first = (wait == 0 and "0" or string.format("%.3f", wait)) .. " " .. next_end .. " " .. clock[1] .. " " .. clock[2]
reply[1] = first .. " " .. (lost and table.concat(lost, ",") or "") .. "\n"
return table.concat(reply)
